// The page's start: find out who is the host, then mount the panel that `data-panel` names.
import "./panels.css";
import type { Host } from "./host.ts";
import { ReportHost } from "./hosts/report.ts";
import { StudioHost } from "./hosts/studio.ts";
import { VsCodeHost } from "./hosts/vscode.ts";
import { PANELS } from "./panels/index.ts";
import type { ViewRequest } from "./protocol.ts";
import { mountWithTabs } from "./tabs.ts";

declare global {
  interface Window {
    acquireVsCodeApi?: unknown;
    /** A test puts its host here before the bundle runs. */
    cuvilHost?: Host;
  }
}

async function start(root: HTMLElement): Promise<void> {
  const { panel = "drilldown", path = "", function: name = "", line, token = "" } = root.dataset;
  const request: ViewRequest = {
    panel,
    path,
    function: name,
    position: line ? { line: Number(line), column: 1 } : null,
  };
  const host = await hostFor(request, token);
  const chosen = host.request.panel || panel;
  if (PANELS[chosen]) mountWithTabs(root, host, chosen, PANELS);
  else root.textContent = `This build of Cuvil's panels has no panel named "${chosen}". Update the extension.`;
}

async function hostFor(request: ViewRequest, token: string): Promise<Host> {
  if (window.cuvilHost) return window.cuvilHost;
  if (window.acquireVsCodeApi) return VsCodeHost.open();
  const embedded = document.getElementById("cuvil-payloads");
  if (embedded) return new ReportHost(request, embedded.textContent ?? "");
  return StudioHost.open(request, token || new URLSearchParams(location.search).get("token") || "");
}

const root = document.getElementById("cuvil");
if (root) {
  start(root).catch((problem: unknown) => {
    root.textContent = problem instanceof Error ? problem.message : String(problem);
  });
}
