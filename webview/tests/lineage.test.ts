import { describe, expect, test } from "vitest";
import { large } from "../fixtures/large.ts";
import { drilldown, PATH } from "../fixtures/softmax.ts";
import { Lineage } from "../src/lineage.ts";
import { SelectionBroker } from "../src/selection.ts";

const lineage = new Lineage(drilldown.columns, drilldown.origins);
const traced = (ids: string[], depth: number) =>
  Object.fromEntries([...lineage.trace(ids, depth)].map(([column, found]) => [column, [...found].sort()]));

describe("one selection, translated to all columns", () => {
  test("an op: what it came from and what was made of it, three layers away", () =>
    expect(traced(["ir:%3"], 3)).toEqual({
      source: ["source:44"],
      cst: ["cst:4"],
      ir: ["ir:%3"],
      kernel: ["kernel:k0"],
      loop: ["loop:k0.0", "loop:k0.5", "loop:k0.6", "loop:k0.7"],
      llvm: ["llvm:0", "llvm:5", "llvm:6", "llvm:7"],
    }));

  test("a machine instruction leads back to its line", () =>
    expect(traced(["asm:3"], 6)).toEqual({
      asm: ["asm:3"],
      llvm: ["llvm:3"],
      loop: ["loop:k0.3"],
      kernel: ["kernel:k0"], // named, but its other ops are not what the instruction came from
      ir: ["ir:%1"],
      cst: ["cst:7"],
      source: ["source:44"],
    }));

  test("a kernel that was picked itself links all its ops and statements", () => {
    const found = lineage.trace(["kernel:k0"], 1);
    expect(found.get("ir")!.size).toBe(7);
    expect(found.get("loop")!.size).toBe(11);
  });

  test("depth 0 is the column itself, depth 1 its neighbours", () => {
    expect(Object.keys(traced(["ir:%3"], 0))).toEqual(["ir"]);
    expect(Object.keys(traced(["ir:%3"], 1)).sort()).toEqual(["cst", "ir", "kernel"]);
  });

  test("an element without an origin is linked to nothing else", () =>
    expect(traced(["asm:0"], 6)).toEqual({ asm: ["asm:0"] }));

  test("an id that does not exist selects nothing", () => expect(traced(["ir:%99"], 6)).toEqual({}));
});

describe("what the cursor is on", () => {
  const at = (line: number, column: number) => lineage.at(PATH, { line, column });
  test("the smallest expression from which something was made", () => {
    expect(at(44, 16)).toBe("cst:4"); // torch.exp(
    expect(at(44, 36)).toBe("cst:7"); // scores.amax(
    expect(at(44, 27)).toBe("cst:6"); // scores, a parameter
  });
  test("the line where there is no such expression on it", () => {
    expect(at(44, 2)).toBe("source:44");
    expect(at(43, 10)).toBe("source:43");
  });
  test("nothing in another file or outside the function", () => {
    expect(lineage.at("/elsewhere.py", { line: 44, column: 16 })).toBeUndefined();
    expect(at(99, 1)).toBeUndefined();
  });
  test("the name under it, for its scopes", () => {
    expect(lineage.symbolAt(PATH, { line: 44, column: 6 })).toBe("cst:3");
    expect(lineage.symbolAt(PATH, { line: 44, column: 27 })).toBe("cst:6");
  });
});

test("the way out of a nested element, outermost first", () =>
  expect(lineage.ancestry("cst:6").map(({ id }) => id)).toEqual(["cst:1", "cst:2", "cst:4", "cst:5", "cst:6"]));

test("any element leads to a place in the user's file", () => {
  expect(lineage.placed("asm:5")?.place?.range.start).toEqual({ line: 44, column: 25 });
  expect(lineage.placed("asm:0")).toBeUndefined();
});

test("edges in a circle do not hang it", () => {
  const circular = new Lineage(drilldown.columns, { "ir:%1": ["ir:%2"], "ir:%2": ["ir:%1"] });
  expect([...circular.trace(["ir:%1"], 6).get("ir")!].sort()).toEqual(["ir:%1", "ir:%2"]);
});

test("200,000 instructions: every one of a loop is found", { timeout: 30_000 }, () => {
  const payload = large(200_000);
  const found = new Lineage(payload.columns, payload.origins).trace(["kernel:0"], 6);
  expect(found.get("asm")!.size).toBe(8 * 10 * 2);
  expect(found.get("source")!.size).toBe(1);
});

describe("the broker", () => {
  test("tells everyone once, and says who picked", () => {
    const broker = new SelectionBroker(3);
    const told: string[] = [];
    broker.load(lineage);
    broker.onChange((kind) => told.push(kind));
    broker.pick(["ir:%3"], "ir");
    broker.hover(["ir:%1"], "ir");
    broker.hover(["ir:%1"], "ir"); // the same again says nothing new
    expect(told).toEqual(["picked", "preview"]);
    expect(broker.picked.from).toBe("ir");
    expect([...broker.picked.linked.get("cst")!]).toEqual(["cst:4"]);
  });

  test("a new version keeps what still exists", () => {
    const broker = new SelectionBroker(3);
    broker.load(lineage);
    broker.pick(["ir:%3", "ir:%4"], "ir");
    const without = drilldown.columns.map((column) => ({
      ...column,
      elements: column.elements.filter(({ id }) => id !== "ir:%4"),
    }));
    broker.load(new Lineage(without, drilldown.origins));
    expect(broker.picked.ids).toEqual(["ir:%3"]);
  });

  test("depth widens what is linked, not what is picked", () => {
    const broker = new SelectionBroker(3);
    broker.load(lineage);
    broker.pick(["ir:%3"], "ir");
    broker.setDepth(4);
    expect([...broker.picked.linked.get("asm")!].sort()).toEqual(["asm:4", "asm:5", "asm:6"]);
    expect(broker.picked.ids).toEqual(["ir:%3"]);
  });
});
