// The overview ruler beside a list: one mark for each linked or found row, wherever it is, so that what is out of view is
// not out of mind. Marks that would touch are drawn as one; a press goes to the nearest row.
import { h } from "./element.ts";

const SLOTS = 160; // more marks than this cannot be told apart on a screen

export interface Marks {
  readonly kind: "linked" | "picked" | "match";
  readonly rows: readonly number[];
}

export class Ruler {
  readonly element = h("div", { class: "ruler", "aria-hidden": "true" });
  private rows: number[] = [];
  private count = 1;
  private share = 1; // of the ruler's height that the rows take: all of it, unless they all fit in view

  constructor(go: (row: number) => void) {
    this.element.addEventListener("click", (event) => {
      const at = (event.offsetY / this.element.clientHeight / this.share) * this.count;
      const nearest = this.rows.reduce<number | undefined>(
        (best, row) => (best === undefined || Math.abs(row - at) < Math.abs(best - at) ? row : best),
        undefined,
      );
      if (nearest !== undefined) go(nearest);
    });
  }

  /** `inView` is how many rows fit; a short list's marks then stand beside its rows. */
  mark(count: number, inView: number, groups: readonly Marks[]): void {
    this.count = Math.max(1, count);
    this.share = Math.min(1, this.count / Math.max(1, inView));
    this.rows = groups.flatMap(({ rows }) => rows);
    const marks = groups.flatMap(({ kind, rows }) => {
      const slots = new Set(rows.map((row) => Math.floor((row / this.count) * SLOTS)));
      return [...slots].map((slot) => {
        const mark = h("div", { class: `mark ${kind}` });
        mark.style.top = `${(100 * this.share * slot) / SLOTS}%`;
        return mark;
      });
    });
    this.element.replaceChildren(...marks);
  }
}
