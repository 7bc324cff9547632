// All panels. Adding one: a file here, a line below, a view in language_server/cuvil_ide/views.
import type { Host } from "../host.ts";
import { mount as drilldown } from "./drilldown.ts";
import { mount as heatmap } from "./heatmap.ts";

export const PANELS: Readonly<Record<string, (root: HTMLElement, host: Host) => void>> = { drilldown, heatmap };
