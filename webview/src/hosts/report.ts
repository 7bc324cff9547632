// One offline file: the payloads stand in the page, nothing is ever fetched. There is no editor; a revealed place is shown by
// the panel's own source column.
import type { Host, Payload } from "../host.ts";
import { PageMemory } from "../page-memory.ts";
import type { PanelInfo, ViewRequest } from "../protocol.ts";

export class ReportHost implements Host {
  readonly hasEditor = false;
  readonly panels: readonly PanelInfo[];
  private readonly payloads: readonly Payload[];
  private readonly memory = new PageMemory("cuvil-report");

  constructor(
    public request: ViewRequest,
    embedded: string,
  ) {
    const data: unknown = JSON.parse(embedded);
    this.payloads = [...payloadsIn(data)];
    this.panels =
      panelsIn(data) ??
      [...new Set(this.payloads.map(({ panel }) => panel))].map((id) => ({ id, title: TITLES[id], question: "" }));
  }

  async files(): Promise<readonly string[]> {
    return [];
  }

  async view(request: ViewRequest): Promise<Payload> {
    const fits = (payload: Payload, path: string, name: string) =>
      payload.panel === request.panel &&
      (path === "" || payload.path === path) &&
      (name === "" || payload.function === name);
    const found =
      this.payloads.find((payload) => fits(payload, request.path, request.function)) ??
      this.payloads.find((payload) => fits(payload, "", request.function)) ??
      this.payloads.find((payload) => fits(payload, "", ""));
    if (!found) throw new Error(`This report has no ${request.panel} panel.`);
    this.request = { panel: found.panel, path: found.path, position: null, function: found.function };
    // Only what is in the file can be picked in it.
    const inside = this.payloads.filter((payload) => payload.panel === request.panel && payload.path === found.path);
    return { ...found, functions: inside.map((payload) => payload.function) };
  }

  reveal(): void {}
  onCursor(): void {}
  onChanged(): void {}
  onShow(): void {}
  onSettings(): void {}

  restore(panel: string): unknown {
    return this.memory.restore(panel);
  }

  save(panel: string, arranged: unknown): void {
    this.memory.save(panel, arranged);
  }
}

const TITLES: Readonly<Record<Payload["panel"], string>> = { drilldown: "Drilldown", heatmap: "Fusion Heatmap" };

/** The payloads, however deep they lie: a report may order them by panel, file or function. */
function* payloadsIn(data: unknown): Generator<Payload> {
  if (typeof data !== "object" || data === null) return;
  if ("panel" in data && "function" in data && "version" in data) yield data as Payload;
  else for (const inner of Object.values(data)) yield* payloadsIn(inner);
}

function panelsIn(data: unknown): PanelInfo[] | undefined {
  const panels = typeof data === "object" && data !== null && "panels" in data ? data.panels : undefined;
  return Array.isArray(panels) && panels.every((panel) => "id" in panel && "title" in panel) ? panels : undefined;
}
