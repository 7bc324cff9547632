// The lineage graph of one payload: which elements of the other columns an element came from, and what became of it.
// Following edges is the one computation a panel does; everything else was computed by the view.
//
// A loop statement came from its ops *and* stands in their kernel. The kernel is part of the answer, but the way must not go on
// through it, or every op of a kernel would be linked to every statement. So of an element's origins only those furthest up
// carry the way on, unless the nearer one (the kernel) is what was picked.
import type { Column, ColumnElement, Position } from "./protocol.ts";

export class Lineage {
  readonly columns: readonly Column[];
  private readonly derived = new Map<string, string[]>();
  private readonly carrying = new Map<string, readonly string[]>(); // the origins that carry on, where not all do
  private readonly elements = new Map<string, { element: ColumnElement; layer: number }>();

  constructor(
    columns: readonly Column[],
    private readonly origins: { readonly [id: string]: readonly string[] },
  ) {
    this.columns = columns;
    columns.forEach((column, layer) => {
      for (const element of column.elements) this.elements.set(element.id, { element, layer });
    });
    for (const id in origins) {
      const sources = origins[id]!;
      if (sources.length > 1) {
        const carrying = this.furthest(sources);
        if (carrying.length < sources.length) this.carrying.set(id, carrying);
      }
      for (const source of sources) push(this.derived, source, id);
    }
  }

  element(id: string): ColumnElement | undefined {
    return this.elements.get(id)?.element;
  }

  /** The column an element stands in: "ir". */
  layer(id: string): string | undefined {
    const layer = this.elements.get(id)?.layer;
    return layer === undefined ? undefined : this.columns[layer]?.id;
  }

  /** Everything the elements came from and everything made from them, no more than `depth` columns away, by column. */
  trace(ids: readonly string[], depth: number): Map<string, Set<string>> {
    const found = new Map<string, Set<string>>();
    const layers = ids.map((id) => this.elements.get(id)?.layer).filter((layer) => layer !== undefined);
    const near = Math.min(...layers) - depth;
    const far = Math.max(...layers) + depth;
    const picked = new Set(ids);
    const carries = (at: string) => (id: string) => this.carrying.get(id)?.includes(at) ?? true;
    const made = this.reach(ids, (at) =>
      picked.has(at) ? this.derived.get(at) : this.derived.get(at)?.filter(carries(at)),
    );
    for (const id of [...this.cameFrom(ids), ...made]) {
      const at = this.elements.get(id);
      if (!at || at.layer < near || at.layer > far) continue;
      const column = this.columns[at.layer]!.id;
      const members = found.get(column);
      if (members) members.add(id);
      else found.set(column, new Set([id]));
    }
    return found;
  }

  /** The nearest element with a place in the user's files: the element itself, or what it came from, breadth first. */
  placed(id: string): ColumnElement | undefined {
    for (const at of this.reach([id], (from) => this.origins[from])) {
      const element = this.element(at);
      if (element?.place) return element;
    }
    return undefined;
  }

  /** The element, its parent, its parent's parent, ... outermost first. */
  ancestry(id: string): ColumnElement[] {
    const chain: ColumnElement[] = [];
    const seen = new Set<string>();
    for (let at: string | null | undefined = id; at && !seen.has(at); at = this.element(at)?.parent) {
      seen.add(at);
      const element = this.element(at);
      if (element) chain.unshift(element);
    }
    return chain;
  }

  /**
   * What the cursor is on: the smallest syntax node around it from which something was made, or else the whole line.
   * A node that spans further lines than the line's own statement is never the answer.
   */
  at(path: string, position: Position): string | undefined {
    let best: ColumnElement | undefined;
    let line: ColumnElement | undefined;
    for (const column of this.columns) {
      if (column.id !== "source" && column.id !== "cst") continue;
      for (const element of column.elements) {
        const place = element.place;
        if (!place || place.path !== path || !holds(place.range, position)) continue;
        if (column.id === "source") line ??= element;
        else if (this.derived.has(element.id) && (!best || smaller(element, best))) best = element;
      }
    }
    if (best && line && best.place!.range.start.line === line.place!.range.start.line) return best.id;
    return line?.id ?? best?.id;
  }

  /** The name written at a position, if a scope is known for it. */
  symbolAt(path: string, position: Position): string | undefined {
    let best: ColumnElement | undefined;
    for (const element of this.columns.find((column) => column.id === "cst")?.elements ?? []) {
      if (!element.symbol || !element.place || element.place.path !== path) continue;
      if (holds(element.place.range, position) && (!best || smaller(element, best))) best = element;
    }
    return best?.id;
  }

  /** Everything they came from. What merely contains an element is named, and the way ends there. */
  private cameFrom(ids: readonly string[]): Set<string> {
    const through = this.reach(ids, (at) => this.carrying.get(at) ?? this.origins[at]);
    const named = [...through].flatMap((at) => (this.carrying.has(at) ? this.origins[at]! : []));
    return new Set([...through, ...named]);
  }

  private furthest(ids: readonly string[]): readonly string[] {
    const layers = ids.map((id) => this.elements.get(id)?.layer ?? Number.POSITIVE_INFINITY);
    const least = Math.min(...layers);
    return ids.filter((_, i) => layers[i] === least);
  }

  private reach(ids: readonly string[], edges: (id: string) => readonly string[] | undefined): Set<string> {
    const seen = new Set(ids);
    for (const id of seen) for (const next of edges(id) ?? []) seen.add(next);
    return seen;
  }
}

function push(map: Map<string, string[]>, key: string, value: string): void {
  const there = map.get(key);
  if (there) there.push(value);
  else map.set(key, [value]);
}

type Range = NonNullable<ColumnElement["place"]>["range"];

function holds({ start, end }: Range, at: Position): boolean {
  const afterStart = at.line > start.line || (at.line === start.line && at.column >= start.column);
  return afterStart && (at.line < end.line || (at.line === end.line && at.column <= end.column));
}

function smaller(a: ColumnElement, b: ColumnElement): boolean {
  const [x, y] = [a.place!.range, b.place!.range];
  const lines = x.end.line - x.start.line - (y.end.line - y.start.line);
  if (lines !== 0) return lines < 0;
  if (x.start.line !== x.end.line) return a.depth > b.depth;
  const columns = x.end.column - x.start.column - (y.end.column - y.start.column);
  return columns !== 0 ? columns < 0 : a.depth > b.depth;
}
