import { describe, expect, test } from "vitest";
import { colourAt, contrast, css, inkOn, kindOf, luminance, type Rgb, type Scale } from "../src/colour.ts";

const SCALES: readonly Scale[] = ["linear", "log", "diverging"];
const steps = Array.from({ length: 101 }, (_, i) => i / 100);

describe("a position becomes a colour", () => {
  test("ends and middle of the two ramps", () => {
    expect(colourAt("linear", 0)).toEqual([0, 34, 78]);
    expect(colourAt("linear", 1)).toEqual([254, 232, 56]);
    expect(colourAt("diverging", 0.5)).toEqual([214, 214, 212]);
    expect(css([0, 34, 78])).toBe("rgb(0 34 78)");
  });

  test("beyond the ends it is the end's colour, and NaN is the middle's", () => {
    for (const scale of SCALES) {
      expect(colourAt(scale, -3)).toEqual(colourAt(scale, 0));
      expect(colourAt(scale, Number.POSITIVE_INFINITY)).toEqual(colourAt(scale, 1));
      expect(colourAt(scale, Number.NaN)).toEqual(colourAt(scale, 0.5));
    }
  });

  test("every channel is a byte", () => {
    for (const scale of SCALES) {
      for (const at of steps) {
        for (const channel of colourAt(scale, at)) {
          expect(Number.isInteger(channel) && channel >= 0 && channel <= 255).toBe(true);
        }
      }
    }
  });
});

describe("colours can be told apart", () => {
  // Along the sequential ramp lightness alone says which value is larger, so it works in grey, and for any eye.
  test("the sequential ramp never gets darker", () => {
    const lightness = steps.map((at) => luminance(colourAt("log", at)));
    for (let i = 1; i < lightness.length; i++) expect(lightness[i]!).toBeGreaterThanOrEqual(lightness[i - 1]!);
    expect(contrast(colourAt("log", 0), colourAt("log", 1))).toBeGreaterThan(10);
  });

  // Protan and deutan eyes lose the red-green difference and keep the blue-yellow one: the two arms differ in that.
  test("the arms of the diverging ramp differ in blue against yellow", () => {
    const blueness = ([red, green, blue]: Rgb) => blue - (red + green) / 2;
    for (const away of [0.1, 0.25, 0.5]) {
      expect(blueness(colourAt("diverging", 0.5 - away))).toBeGreaterThan(15);
      expect(blueness(colourAt("diverging", 0.5 + away))).toBeLessThan(-15);
    }
  });

  test("text on any colour has a contrast of at least 4.5", () => {
    for (const scale of SCALES) {
      for (const at of steps) {
        const colour = colourAt(scale, at);
        const ink: Rgb = inkOn(colour) === "dark" ? [0, 0, 0] : [255, 255, 255];
        expect(contrast(colour, ink)).toBeGreaterThanOrEqual(4.5);
      }
    }
  });
});

describe("zero and unknown are no colours", () => {
  test.each([
    [34.1, 0.7, "value"],
    [1e-12, 0, "value"],
    [0, 0, "zero"],
    [null, null, "unknown"],
    [5, null, "unknown"],
    [5, Number.NaN, "unknown"],
    [Number.POSITIVE_INFINITY, 1, "value"],
  ] as const)("%s at %s is %s", (value, position, kind) => expect(kindOf(value, position)).toBe(kind));
});
