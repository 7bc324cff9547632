// A list of any length that draws only the rows in view, at one fixed height. Rows are absolutely placed in a spacer as
// tall as all of them; scrolling reuses the elements of rows that stay. A million rows cost what forty cost.
import { h } from "./element.ts";

const OVERSCAN = 6; // rows drawn beyond each edge, so that a small scroll shows no gap

export class VirtualList {
  readonly element: HTMLElement;
  private readonly spacer = h("div", { class: "rows", role: "presentation" });
  private readonly shown = new Map<number, HTMLElement>();
  private count = 0;
  private awaited = 0;

  constructor(
    readonly rowHeight: number,
    private readonly draw: (index: number) => HTMLElement,
    attributes: Readonly<Record<string, string | number>>,
  ) {
    this.element = h("div", { ...attributes, class: `list ${attributes.class ?? ""}` }, this.spacer);
    this.element.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(this.element);
  }

  /** New rows; `width` is the longest one's length in characters. */
  reset(count: number, width: number): void {
    this.count = count;
    this.spacer.style.height = `${count * this.rowHeight}px`;
    this.spacer.style.minWidth = `${width}ch`;
    this.redraw();
  }

  /** Draws the rows in view anew, after something about them has changed. */
  redraw(): void {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.update();
  }

  rowsInView(): [first: number, last: number] {
    const top = this.element.scrollTop;
    return [
      Math.ceil(top / this.rowHeight),
      Math.max(0, Math.floor((top + this.element.clientHeight) / this.rowHeight) - 1),
    ];
  }

  /** Scrolls only if the row is out of view, and then puts it a third down, where its surroundings can be read. */
  reveal(index: number): void {
    const [first, last] = this.rowsInView();
    if (index >= first && index <= last) return;
    this.element.scrollTop = index * this.rowHeight - this.element.clientHeight / 3;
    this.update();
  }

  /** As `reveal`, but moves no further than needed: for walking with the arrows. */
  nudge(index: number): void {
    const [first, last] = this.rowsInView();
    if (index < first) this.element.scrollTop = index * this.rowHeight;
    else if (index > last) this.element.scrollTop = (index + 1) * this.rowHeight - this.element.clientHeight;
    this.update();
  }

  rowAt(index: number): HTMLElement | undefined {
    return this.shown.get(index);
  }

  private soon(): void {
    this.awaited ||= requestAnimationFrame(() => {
      this.awaited = 0;
      this.update();
    });
  }

  private update(): void {
    const height = this.element.clientHeight;
    const from = Math.max(0, Math.floor(this.element.scrollTop / this.rowHeight) - OVERSCAN);
    const to = Math.min(this.count, Math.ceil((this.element.scrollTop + height) / this.rowHeight) + OVERSCAN);
    for (const [index, row] of this.shown) {
      if (index >= from && index < to) continue;
      row.remove();
      this.shown.delete(index);
    }
    for (let index = from; index < to; index++) {
      if (this.shown.has(index)) continue;
      const row = this.draw(index);
      row.style.top = `${index * this.rowHeight}px`;
      this.shown.set(index, row);
      this.spacer.append(row);
    }
  }
}
