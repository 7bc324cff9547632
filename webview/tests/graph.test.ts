import { expect, test } from "vitest";
import { drilldown } from "../fixtures/softmax.ts";
import { groupsOf, nearest, pathOf } from "../src/graph.ts";

const { graph } = drilldown;
const node = (id: string) => graph.nodes.find((at) => at.id === id)!;

test("a group's frame holds its members", () => {
  const frame = groupsOf(graph).get("kernel:k0")!;
  for (const member of graph.nodes.filter((at) => at.group === "kernel:k0")) {
    expect(frame.x).toBeLessThan(member.x);
    expect(frame.y).toBeLessThan(member.y);
    expect(frame.x + frame.width).toBeGreaterThan(member.x + member.width);
    expect(frame.y + frame.height).toBeGreaterThan(member.y + member.height);
  }
});

test("a group that is a node of its own keeps that node's frame", () => {
  const own = { ...node("ir:%0"), id: "kernel:k0", x: -5, y: 60, width: 300, height: 400 };
  expect(groupsOf({ ...graph, nodes: [own, ...graph.nodes] }).get("kernel:k0")).toBe(own);
});

test("arrows walk to the neighbour in their direction", () => {
  const to = (from: string, dx: number, dy: number) => nearest(graph.nodes, node(from), dx, dy)?.id;
  expect(to("ir:%2", 0, 1)).toBe("ir:%3");
  expect(to("ir:%3", 0, -1)).toBe("ir:%2");
  expect(to("ir:%0", 0, -1)).toBeUndefined();
  expect(nearest(graph.nodes, undefined, 0, 1)?.id).toBe("ir:%0");
});

test("lines start and end where the view says", () => {
  expect(pathOf([0, 0, 10, 40])).toBe("M0 0C0 20 10 20 10 40");
  expect(pathOf([0, 0, 5, 10, 10, 40])).toBe("M0 0Q5 10 10 40");
  expect(pathOf([1, 2])).toBe("");
});
