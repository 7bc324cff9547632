import { expect, describe as group, test } from "vitest";
import { describe, number, usedPart } from "../src/legend-text.ts";
import type { Metric } from "../src/protocol.ts";

const metric = (part: Partial<Metric>): Metric => ({
  id: "intensity",
  title: "Arithmetic intensity",
  unit: "FLOP/B",
  provenance: "static",
  scale: "diverging",
  low: 1,
  high: 16,
  centre: 4,
  note: "",
  ...part,
});

group("numbers as people read them", () => {
  test.each([
    [0, "0"],
    [34.12, "34.1"],
    [999.6, "1 k"],
    [2_100_000, "2.1 M"],
    [-1536, "-1.54 k"],
    [4e-7, "4e-7"],
    [1e18, "1000000 T"],
    [Number.POSITIVE_INFINITY, "∞"],
    [Number.NaN, "?"],
  ])("%s is %s", (value, text) => expect(number(value)).toBe(text));
});

group("which part of the ramp is used", () => {
  test("a scale with equal arms uses all of it", () => expect(usedPart(metric({}))).toEqual([0, 1]));
  test("values that reach further down leave the upper end unused", () => {
    const [from, to] = usedPart(metric({ low: 0.25, high: 8 }));
    expect(from).toBe(0);
    expect(to).toBeCloseTo(0.625); // one doubling above the ridge, four halvings below it: 0.5 + 1/8
  });
  test("all values below the ridge stay on the left arm", () => {
    const [from, to] = usedPart(metric({ low: 0.5, high: 2 }));
    expect(from).toBe(0);
    expect(to).toBeLessThan(0.5);
  });
  test("equal values have one colour, in the middle", () => {
    expect(usedPart(metric({ scale: "log", low: 7, high: 7, centre: null }))).toEqual([0.5, 0.5]);
    expect(usedPart(metric({ low: 4, high: 4 }))).toEqual([0.5, 0.5]);
  });
  test("a zero stands at the low end", () => expect(usedPart(metric({ low: 0, high: 16 }))).toEqual([0, 1]));
});

group("the legend in words", () => {
  test("range, unit, ridge and provenance", () =>
    expect(describe(metric({}), "x86-64")).toBe(
      "Arithmetic intensity, 1 to 16 FLOP/B, the ridge point of x86-64 is 4, static.",
    ));
  test("one value", () =>
    expect(
      describe(metric({ low: 7, high: 7, scale: "log", centre: null, unit: "B", title: "Memory traffic" }), "x"),
    ).toBe("Memory traffic, all values are 7 B, static."));
});
