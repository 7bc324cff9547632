// The key of a heatmap: the ramp with its real extremes and unit, the ridge point where there is one, how unknown and zero
// look, and whether the numbers were computed or measured. Colours without this are decoration.
import { colourAt, css } from "./colour.ts";
import { h, s } from "./element.ts";
import { describe, number, usedPart } from "./legend-text.ts";
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

const PROVENANCE = {
  static: "Computed from the code and its shapes; nothing was run",
  simulated: "A model of the machine was run",
  measured: "Timers or counters of a real run",
} as const;
