// The key of a heatmap: the ramp with its real extremes and unit, the ridge point where there is one, how unknown and zero
// look, and whether the numbers were computed or measured. Colours without this are decoration.
import { colourAt, css } from "./colour.ts";
import { h, s } from "./element.ts";
import type { Metric } from "./protocol.ts";

const STEPS = 48;
const WIDTH = 220;
const HEIGHT = 12;

export function legend(metric: Metric, machine: string): HTMLElement {
  const [from, to] = usedPart(metric);
  const steps = Array.from({ length: STEPS }, (_, i) => {
    const fill = css(colourAt(metric.scale, from + ((to - from) * i) / (STEPS - 1)));
    return s("rect", { x: (i * WIDTH) / STEPS, y: 0, width: WIDTH / STEPS + 0.5, height: HEIGHT, fill });
  });
  const ridge = metric.scale === "diverging" && metric.centre !== null;
  const tick = ridge && from < 0.5 && to > 0.5 ? (WIDTH * (0.5 - from)) / (to - from) : undefined;
  const ramp = s(
    "svg",
    { class: "ramp", width: WIDTH, height: HEIGHT + 6, viewBox: `0 0 ${WIDTH} ${HEIGHT + 6}`, "aria-hidden": "true" },
    ...steps,
    tick !== undefined && s("path", { class: "tick", d: `M${tick} 0v${HEIGHT + 6}` }),
  );
  const equal = metric.low === metric.high;
  return h(
    "div",
    { class: "legend", role: "note", "aria-label": `Legend. ${describe(metric, machine)}` },
    h("span", { class: `badge ${metric.provenance}`, title: PROVENANCE[metric.provenance] }, metric.provenance),
    h("span", { class: "end" }, equal ? `all ${number(metric.low)}` : number(metric.low)),
    ramp,
    !equal && h("span", { class: "end" }, number(metric.high)),
    h("span", { class: "unit" }, metric.unit),
    ridge &&
      h(
        "span",
        { class: "ridge", title: `Left of it memory is the limit, right of it arithmetic (${machine})` },
        `${tick === undefined ? "" : "│ "}ridge ${number(metric.centre!)}`,
      ),
    h("span", { class: "key" }, h("span", { class: "swatch zero" }), "zero"),
    h("span", { class: "key" }, h("span", { class: "swatch unknown" }), "unknown"),
    metric.note !== "" && h("span", { class: "metric-note" }, metric.note),
  );
}

/**
 * Which part of the ramp the values use. A diverging scale reaches equally far to both sides of its centre in ratios (so says
 * the view that made the positions), which leaves the shorter side's end unused.
 */
export function usedPart({ scale, low, high, centre }: Metric): [from: number, to: number] {
  if (scale !== "diverging" || centre === null || centre <= 0) return low === high ? [0.5, 0.5] : [0, 1];
  const reach = Math.max(...[low, high].filter((end) => end > 0).map((end) => Math.abs(Math.log(end / centre))), 0);
  const at = (value: number): number => {
    if (value <= 0) return 0;
    return reach === 0 ? 0.5 : 0.5 + Math.log(value / centre) / (2 * reach);
  };
  return [at(low), at(high)];
}

/** The legend in words, for people who do not see the ramp. */
export function describe(metric: Metric, machine: string): string {
  const range =
    metric.low === metric.high
      ? `all values are ${number(metric.low)}`
      : `${number(metric.low)} to ${number(metric.high)}`;
  const ridge =
    metric.scale === "diverging" && metric.centre !== null
      ? `, the ridge point of ${machine} is ${number(metric.centre)}`
      : "";
  return `${metric.title}, ${range} ${metric.unit}${ridge}, ${metric.provenance}.`;
}

const PROVENANCE = {
  static: "Computed from the code and its shapes; nothing was run",
  simulated: "A model of the machine was run",
  measured: "Timers or counters of a real run",
} as const;

/** Three significant digits, with k, M, G for large and a power of ten for very small numbers: 34.1, 2.1 M, 4e-7. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : Number.isNaN(value) ? "?" : "-∞";
  const size = Math.abs(value);
  for (const [unit, sign] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size >= unit * 0.9995) return `${three(value / unit)} ${sign}`;
  }
  return size !== 0 && size < 1e-3 ? value.toExponential(1).replace(".0e", "e") : three(value);
}

const three = (value: number): string => String(Number(value.toPrecision(3)));
