import { describe, expect, test } from "vitest";
import { drilldown } from "../fixtures/softmax.ts";
import { foldedAtFirst, outline, subtree } from "../src/folding.ts";

const elements = (id: string) => drilldown.columns.find((column) => column.id === id)!.elements;
const shown = (id: string, folded: string[]) => outline(elements(id), new Set(folded)).rows.map((row) => row.id);

describe("rows of a column", () => {
  test("nothing folded: everything, in reading order", () => expect(shown("ir", []).length).toBe(8));

  test("a folded element hides what is inside it and nothing after it", () =>
    expect(shown("cst", ["cst:2"])).toEqual(["cst:1", "cst:2", "cst:8", "cst:9", "cst:10", "cst:11"]));

  test("a fold inside a folded element changes nothing until that opens", () =>
    expect(shown("cst", ["cst:2", "cst:5"])).toEqual(shown("cst", ["cst:2"])));

  test("a hidden element is shown by the row it is folded into", () => {
    const { rowOf } = outline(elements("cst"), new Set(["cst:2"]));
    expect(rowOf.get("cst:7")).toBe(rowOf.get("cst:2"));
    expect(rowOf.get("cst:8")).toBe(2);
  });

  test("no elements, no rows", () => expect(outline([], new Set()).rows).toEqual([]));
});

test("a subtree is the element and what is inside it", () => {
  expect(subtree(elements("cst"), "cst:8")).toEqual(["cst:8", "cst:9", "cst:10", "cst:11"]);
  expect(subtree(elements("cst"), "cst:3")).toEqual(["cst:3"]);
  expect(subtree(elements("cst"), "gone")).toEqual([]);
});

describe("what is folded at first", () => {
  test("composites of the tensor IR: people read div, not how it is made", () =>
    expect([...foldedAtFirst("ir", elements("ir"))]).toEqual(["ir:%5"]));
  test("not a short syntax tree, and not loops", () => {
    expect(foldedAtFirst("cst", elements("cst")).size).toBe(0);
    expect(foldedAtFirst("loop", elements("loop")).size).toBe(0);
  });
  test("a long syntax tree below its statements", () => {
    const long = Array.from({ length: 30 }, () => elements("cst")).flat();
    expect(foldedAtFirst("cst", long).has("cst:4")).toBe(true);
    expect(foldedAtFirst("cst", long).has("cst:1")).toBe(false);
  });
});
