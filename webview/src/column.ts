// One column of the drilldown: a layer as text. It draws the rows of its outline, tells the panel what was picked, hovered
// or opened, and shows what the broker says is linked. It knows nothing of the other columns.
import { button, h } from "./element.ts";
import { foldedAtFirst, type Outline, outline, subtree, subtreeAt } from "./folding.ts";
import type { Column, ColumnElement } from "./protocol.ts";
import { Ruler } from "./ruler.ts";
import type { SelectionBroker } from "./selection.ts";
import { splitter } from "./splitter.ts";
import { tokens } from "./tokens.ts";
import { VirtualList } from "./virtual-list.ts";

export const ROW_HEIGHT = 20;
const EMPTY: ReadonlySet<string> = new Set();

export interface ColumnEvents {
  /** An element was picked by click or Enter; `character` is where in the row's text, if the mouse said so. */
  pick(element: ColumnElement, column: Column, character: number | undefined): void;
  hover(element: ColumnElement | undefined, column: Column): void;
  /** An element was opened by double click: the panel shows what is inside it, here and in the syntax tree. */
  open(element: ColumnElement, column: Column): void;
}

export class ColumnView {
  readonly element: HTMLElement;
  readonly body = h("div", { class: "column-body" });
  readonly tools = h("span", { class: "column-tools" });
  private readonly list: VirtualList;
  private readonly ruler = new Ruler((row) => this.list.reveal(row));
  private readonly title = h("h2");
  private readonly count = h("span", { class: "count" });
  private readonly coverage = h("span", { class: "coverage" });
  private readonly made = h("span", { class: "made" });
  private readonly problem = h("p", { class: "problem", hidden: true });
  private readonly nextUnmapped: HTMLButtonElement;
  private outline: Outline = { parents: new Set(), rows: [], indices: [], rowOf: new Map() };
  private folded = new Set<string>();
  private matches: ReadonlySet<string> = EMPTY;
  private active = 0;

  constructor(
    private column: Column,
    private readonly broker: SelectionBroker,
    private readonly events: ColumnEvents,
  ) {
    const tree = column.id !== "source" && column.id !== "asm";
    this.list = new VirtualList(ROW_HEIGHT, (index) => this.drawRow(index), {
      class: `layer-${column.id}`,
      role: tree ? "tree" : "listbox",
      tabindex: 0,
      "aria-label": column.title,
    });
    this.nextUnmapped = button("Go to the next line without an origin", "unmapped", () => this.goToUnmapped(), {
      class: "link",
    });
    this.element = h(
      "section",
      { class: "column", "data-column": column.id },
      h("header", {}, this.title, this.count, this.tools),
      h("div", { class: "column-main" }, this.body),
      h("footer", {}, this.coverage, this.nextUnmapped, this.made),
    );
    this.element.append(splitter(this.element));
    this.body.append(this.list.element, this.ruler.element, this.problem);
    this.list.element.addEventListener("click", (event) => this.onClick(event));
    this.list.element.addEventListener("dblclick", (event) => {
      const element = this.elementOf(event);
      if (element) events.open(element, this.column);
    });
    this.list.element.addEventListener("mousemove", (event) => events.hover(this.elementOf(event), this.column));
    this.list.element.addEventListener("mouseleave", () => events.hover(undefined, this.column));
    this.list.element.addEventListener("keydown", (event) => this.onKey(event));
    this.list.element.addEventListener("focus", () => this.setActive(this.active, false));
    this.load(column, true);
  }

  /** A new version of the layer. What was folded stays so; `fresh` starts over, for another function. */
  load(column: Column, fresh: boolean): void {
    this.column = column;
    if (fresh) {
      this.folded = foldedAtFirst(column.id, column.elements);
      this.active = 0;
    }
    this.title.textContent = column.title;
    const unmapped = column.total - column.mapped;
    this.coverage.textContent = column.total ? `${percent(column.mapped, column.total)} mapped` : "";
    this.coverage.title = `${column.mapped} of ${column.total} elements have an origin in the layer before`;
    this.nextUnmapped.textContent = column.id === "source" || !unmapped ? "" : `${unmapped} unmapped`;
    this.nextUnmapped.hidden = this.nextUnmapped.textContent === "";
    this.made.textContent = column.made_by;
    this.made.title = `Made by: ${column.made_by}`;
    this.problem.textContent = column.problem;
    this.problem.hidden = !column.problem;
    this.refold();
  }

  focus(): void {
    this.list.element.focus();
  }

  /** Draws what the broker says; scrolls to it only if none of it is in view and someone else picked it. */
  show(kind: "picked" | "preview"): void {
    if (kind === "picked") {
      const rows = this.linkedRows();
      const total = this.broker.picked.linked.get(this.column.id)?.size ?? 0;
      this.count.textContent = total ? `${total} of ${this.column.elements.length}` : "";
      this.element.classList.toggle("has-linked", total > 0);
      const [first, last] = this.list.rowsInView();
      if (
        rows.length &&
        this.broker.picked.from !== this.column.id &&
        !rows.some((row) => row >= first && row <= last)
      ) {
        this.list.reveal(rows[0]!);
      }
      if (rows.length && this.broker.picked.from !== this.column.id) this.active = rows[0]!;
      this.markRuler();
    }
    this.list.redraw();
  }

  setMatches(matches: ReadonlySet<string>): void {
    this.matches = matches;
    this.markRuler();
    this.list.redraw();
  }

  reveal(id: string): void {
    const row = this.outline.rowOf.get(id);
    if (row === undefined) return;
    this.active = row;
    this.list.reveal(row);
    this.list.redraw();
  }

  /** Unfolds everything inside an element (and around it), or folds it again if it was all open. */
  toggleSubtree(id: string): void {
    const inside = subtree(this.column.elements, id).filter((at) => this.outline.parents.has(at));
    const close = inside.length > 0 && inside.every((at) => !this.folded.has(at));
    if (close) this.folded.add(id);
    else this.unfold(id, inside);
    this.refold();
  }

  openSubtree(id: string): void {
    this.unfold(id, subtree(this.column.elements, id));
    this.refold();
    this.reveal(id);
  }

  isParent(id: string): boolean {
    return this.outline.parents.has(id);
  }

  private unfold(id: string, inside: readonly string[]): void {
    for (const at of inside) this.folded.delete(at);
    const byId = new Map(this.column.elements.map((element) => [element.id, element]));
    for (let at = byId.get(id); at; at = at.parent ? byId.get(at.parent) : undefined) this.folded.delete(at.id);
  }

  private refold(): void {
    const activeId = this.outline.rows[this.active]?.id;
    this.outline = outline(this.column.elements, this.folded);
    this.active = (activeId && this.outline.rowOf.get(activeId)) || 0;
    const longest = this.outline.rows.reduce((most, { text, depth }) => Math.max(most, text.length + 2 * depth), 0);
    this.list.reset(this.outline.rows.length, longest + 8);
    this.markRuler();
  }

  private linkedRows(): number[] {
    return this.rowsOf(this.broker.picked.linked.get(this.column.id) ?? EMPTY);
  }

  private rowsOf(ids: ReadonlySet<string>): number[] {
    const rows = new Set<number>();
    for (const id of ids) {
      const row = this.outline.rowOf.get(id);
      if (row !== undefined) rows.add(row);
    }
    return [...rows].sort((a, b) => a - b);
  }

  private markRuler(): void {
    this.ruler.mark(this.outline.rows.length, this.list.element.clientHeight / ROW_HEIGHT, [
      { kind: "match", rows: this.rowsOf(this.matches) },
      { kind: "linked", rows: this.linkedRows() },
    ]);
  }

  private drawRow(index: number): HTMLElement {
    const element = this.outline.rows[index]!;
    const parent = this.outline.parents.has(element.id);
    const open = parent && !this.folded.has(element.id);
    const { picked, preview } = this.broker;
    const id = this.column.id;
    const inside = open || !parent ? [element.id] : subtreeAt(this.column.elements, this.outline.indices[index]!);
    const any = (set: ReadonlySet<string> | undefined) => Boolean(set) && inside.some((at) => set!.has(at));
    const classes = ["row"];
    if (any(picked.linked.get(id))) classes.push("linked");
    if (picked.ids.includes(element.id)) classes.push("picked");
    if (any(preview.linked.get(id))) classes.push("preview");
    if (any(this.matches)) classes.push("match");
    if (element.note) classes.push("unmapped");
    if (index === this.active) classes.push("active");
    const tree = this.list.element.getAttribute("role") === "tree";
    const row = h("div", {
      id: rowId(id, index),
      class: classes.join(" "),
      role: tree ? "treeitem" : "option",
      "aria-selected": String(classes.includes("linked")),
      "aria-level": tree ? element.depth + 1 : null,
      "aria-expanded": tree && parent ? String(open) : null,
      "aria-setsize": this.outline.rows.length,
      "aria-posinset": index + 1,
      "data-index": index,
      "data-id": element.id,
      title: element.note ? `No origin: ${element.note}` : null,
    });
    if (id === "source")
      row.append(
        h("span", { class: "line-number", "aria-hidden": "true" }, String(element.place?.range.start.line ?? "")),
      );
    else {
      const indent = h("span", { class: "indent", "aria-hidden": "true" }, parent ? (open ? "▾" : "▸") : "");
      indent.style.width = `${2 * element.depth + 2}ch`;
      row.append(indent);
    }
    const text = h("span", { class: "text" });
    for (const token of tokens(id, element.text)) {
      text.append(token.kind === "plain" ? token.text : h("span", { class: `t-${token.kind}` }, token.text));
    }
    row.append(text);
    if (element.note) row.append(h("span", { class: "note" }, element.note));
    return row;
  }

  private elementOf(event: Event): ColumnElement | undefined {
    const row = (event.target as Element).closest<HTMLElement>(".row");
    return row ? this.outline.rows[Number(row.dataset.index)] : undefined;
  }

  private onClick(event: MouseEvent): void {
    const element = this.elementOf(event);
    if (!element) return;
    this.setActive(this.outline.rowOf.get(element.id)!, false);
    const onTwisty = (event.target as Element).classList.contains("indent") && this.outline.parents.has(element.id);
    if (onTwisty) this.toggle(element.id);
    else if (event.detail < 2) this.events.pick(element, this.column, characterAt(event));
  }

  private toggle(id: string): void {
    if (!this.folded.delete(id)) this.folded.add(id);
    this.refold();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.list.element.clientHeight / ROW_HEIGHT) - 1);
    const last = this.outline.rows.length - 1;
    const element = this.outline.rows[this.active];
    const moves: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (to !== undefined) this.setActive(Math.min(last, Math.max(0, to)), true);
    else if (!element) return;
    else if (event.key === "Enter") this.events.pick(element, this.column, undefined);
    else if (event.key === " ") this.events.open(element, this.column);
    else if (event.key === "ArrowRight") this.stepIn(element);
    else if (event.key === "ArrowLeft") this.stepOut(element);
    else if (event.key === "n" || event.key === "N") this.goToLinked(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  private stepIn(element: ColumnElement): void {
    if (!this.outline.parents.has(element.id)) return;
    if (this.folded.has(element.id)) this.toggle(element.id);
    else this.setActive(this.active + 1, true);
  }

  private stepOut(element: ColumnElement): void {
    if (this.outline.parents.has(element.id) && !this.folded.has(element.id)) this.toggle(element.id);
    else if (element.parent) this.setActive(this.outline.rowOf.get(element.parent) ?? this.active, true);
  }

  private goToLinked(step: 1 | -1): void {
    const rows = this.linkedRows();
    const next =
      step > 0
        ? (rows.find((row) => row > this.active) ?? rows[0])
        : (rows.findLast((row) => row < this.active) ?? rows.at(-1));
    if (next !== undefined) this.setActive(next, true);
  }

  private goToUnmapped(): void {
    const { rows } = this.outline;
    for (let step = 1; step <= rows.length; step++) {
      const at = (this.active + step) % rows.length;
      if (!rows[at]!.note) continue;
      this.list.reveal(at);
      this.setActive(at, false);
      return;
    }
  }

  private setActive(index: number, scroll: boolean): void {
    const before = this.active;
    this.active = index;
    if (scroll) this.list.nudge(index);
    this.list.rowAt(before)?.classList.remove("active");
    this.list.rowAt(index)?.classList.add("active");
    this.list.element.setAttribute("aria-activedescendant", rowId(this.column.id, index));
    const element = this.outline.rows[index];
    if (scroll && element) this.events.hover(element, this.column);
  }
}

const rowId = (column: string, index: number): string => `row-${column}-${index}`;

const percent = (part: number, whole: number): string => {
  // 434 of 435 is not "100 %": round down, to one decimal near the top.
  const share = (100 * part) / whole;
  return `${share > 99 && share < 100 ? Math.floor(share * 10) / 10 : Math.floor(share)} %`;
};

/** Which character of the row's text was clicked: the text is cut into tokens, so their lengths are added up. */
function characterAt(event: MouseEvent): number | undefined {
  const row = (event.target as Element).closest(".row");
  const text = row?.querySelector(".text");
  const at = document.caretPositionFromPoint?.(event.clientX, event.clientY);
  if (!text || !at || !text.contains(at.offsetNode)) return undefined;
  const before = document.createRange();
  before.setStart(text, 0);
  before.setEnd(at.offsetNode, at.offset);
  return before.toString().length;
}
