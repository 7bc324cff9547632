// Which elements of a column are shown: all in reading order, less those inside a folded one. Elements carry their depth,
// so one pass over them is enough. A folded element stands for everything inside it.
import type { ColumnElement } from "./protocol.ts";

export interface Outline {
  /** Elements that enclose others. */
  readonly parents: ReadonlySet<string>;
  /** The shown elements, in order, and for each its index among all. */
  readonly rows: readonly ColumnElement[];
  readonly indices: readonly number[];
  /** For each element the row that shows it: its own, or that of the outermost folded element around it. */
  readonly rowOf: ReadonlyMap<string, number>;
}

export function outline(elements: readonly ColumnElement[], folded: ReadonlySet<string>): Outline {
  const parents = new Set<string>();
  const rows: ColumnElement[] = [];
  const indices: number[] = [];
  const rowOf = new Map<string, number>();
  let hiddenBelow = Number.POSITIVE_INFINITY;
  for (const [index, element] of elements.entries()) {
    if (element.parent) parents.add(element.parent);
    if (element.depth > hiddenBelow) {
      rowOf.set(element.id, rows.length - 1);
      continue;
    }
    rowOf.set(element.id, rows.length);
    rows.push(element);
    indices.push(index);
    hiddenBelow = folded.has(element.id) ? element.depth : Number.POSITIVE_INFINITY;
  }
  return { parents, rows, indices, rowOf };
}

/** The element and everything inside it. */
export function subtree(elements: readonly ColumnElement[], id: string): string[] {
  const start = elements.findIndex((element) => element.id === id);
  return start < 0 ? [] : subtreeAt(elements, start);
}

/** As `subtree`, where the element's index is known. */
export function subtreeAt(elements: readonly ColumnElement[], start: number): string[] {
  let end = start + 1;
  while (end < elements.length && elements[end]!.depth > elements[start]!.depth) end++;
  return elements.slice(start, end).map((element) => element.id);
}

/** What is folded at first: composites of the tensor IR (people read "softmax"), and a long syntax tree below its statements. */
export function foldedAtFirst(layer: string, elements: readonly ColumnElement[]): Set<string> {
  const folded = new Set<string>();
  if (layer !== "ir" && !(layer === "cst" && elements.length > 60)) return folded;
  const top = elements[0]?.depth ?? 0;
  for (const element of elements) {
    if (!element.parent) continue;
    const parentDepth = element.depth - 1 - top;
    if (layer === "ir" || parentDepth >= 1) folded.add(element.parent);
  }
  return folded;
}
