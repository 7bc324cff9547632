// The legend in words and numbers, without drawing: the panel's legend, its table and the editor's status bar share it.
import type { Metric } from "./protocol.ts";

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
