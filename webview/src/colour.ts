// From a position on a scale to a colour. Two ramps, both readable with any of the common colour-vision deficiencies
// and both rising evenly in lightness where that carries the meaning: *sequential* dark blue to yellow (the cividis
// idea), *diverging* blue over a neutral middle to orange. Colours are mixed in OKLab (Björn Ottosson, 2020), where equal
// steps look equal. Zero and unknown are not colours of a ramp: `kindOf` names them and the style sheet draws them.

export type Scale = "linear" | "log" | "diverging";
export type Rgb = readonly [red: number, green: number, blue: number]; // 0..255

const SEQUENTIAL: readonly Rgb[] = [
  [0, 34, 78],
  [53, 69, 108],
  [102, 105, 112],
  [148, 142, 119],
  [200, 184, 102],
  [254, 232, 56],
];
const DIVERGING: readonly Rgb[] = [
  [20, 82, 158],
  [99, 157, 210],
  [214, 214, 212],
  [240, 165, 84],
  [178, 84, 8],
];

/** What to draw for a value: its colour, or a sign of its own for zero and for a value nobody knows. */
export function kindOf(value: number | null, position: number | null): "value" | "zero" | "unknown" {
  if (value === null || position === null || !Number.isFinite(position)) return "unknown";
  return value === 0 ? "zero" : "value";
}

/** The colour at a position 0..1; positions beyond the ends get the end's colour, NaN the middle's. */
export function colourAt(scale: Scale, position: number): Rgb {
  const stops = scale === "diverging" ? DIVERGING : SEQUENTIAL;
  const clamped = Number.isNaN(position) ? 0.5 : Math.min(1, Math.max(0, position));
  const at = clamped * (stops.length - 1);
  const left = Math.min(stops.length - 2, Math.floor(at));
  return mix(stops[left]!, stops[left + 1]!, at - left);
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** Dark or light text, whichever is easier to read on the colour (WCAG 2 contrast). */
export function inkOn(colour: Rgb): "dark" | "light" {
  return contrast(colour, [0, 0, 0]) >= contrast(colour, [255, 255, 255]) ? "dark" : "light";
}

/** WCAG 2 contrast ratio, 1..21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
  return x > y ? x / y : y / x;
}

export function luminance([red, green, blue]: Rgb): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function mix(a: Rgb, b: Rgb, share: number): Rgb {
  const [x, y] = [toOklab(a), toOklab(b)];
  return fromOklab([0, 1, 2].map((i) => x[i]! + (y[i]! - x[i]!) * share));
}

const linear = (channel: number): number => {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
};
const gamma = (c: number): number =>
  Math.round(255 * Math.min(1, Math.max(0, c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055)));

function toOklab(colour: Rgb): number[] {
  const [r, g, b] = [linear(colour[0]), linear(colour[1]), linear(colour[2])];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab(lab: readonly number[]): Rgb {
  const [L, a, b] = lab as [number, number, number];
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}
