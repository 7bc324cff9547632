// The language status item ({ } in the status bar of a Python file): is the server there, and what of the binary of this file.
import { basename } from "node:path";
import * as vscode from "vscode";
import { type Client, type Health, PYTHON } from "./client.ts";

const SETTLE_MS = 700;

/** What `cuvil/status` answers. */
interface Status {
  readonly message: string;
  readonly version: string;
  readonly compile: {
    readonly [path: string]: {
      readonly libraries: readonly string[];
      readonly stale: boolean;
      readonly seconds: number;
      readonly problem: string;
      readonly refusals: readonly string[];
      readonly running: boolean;
    };
  };
}

const WORDS: Readonly<Record<Health, string>> = {
  starting: "Cuvil is starting",
  running: "Cuvil",
  stopped: "Cuvil has stopped",
  "not installed": "Cuvil is not installed",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("cuvil.status", PYTHON);
  private readonly subscriptions: vscode.Disposable[];
  private settling: NodeJS.Timeout | undefined;

  constructor(private readonly client: Client) {
    this.item.name = "Cuvil";
    this.subscriptions = [
      this.item,
      client.onHealth(() => this.soon()),
      client.onViewChanged(() => this.soon()),
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.workspace.onDidSaveTextDocument(() => this.soon()),
    ];
    this.soon();
  }

  dispose(): void {
    clearTimeout(this.settling);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private soon(): void {
    const { health } = this.client;
    this.item.text = WORDS[health];
    this.item.busy = health === "starting";
    this.item.severity =
      health === "running" || health === "starting"
        ? vscode.LanguageStatusSeverity.Information
        : vscode.LanguageStatusSeverity.Warning;
    this.item.command =
      health === "not installed"
        ? { command: "cuvil.selectInterpreter", title: "Select Interpreter" }
        : health === "stopped"
          ? { command: "cuvil.restart", title: "Restart" }
          : { command: "cuvil.showLog", title: "Show Log" };
    clearTimeout(this.settling);
    if (health === "running") this.settling = setTimeout(() => void this.ask(), SETTLE_MS);
  }

  private async ask(): Promise<void> {
    try {
      const status = await this.client.request<Status>("cuvil/status", {});
      const path = vscode.window.activeTextEditor?.document.uri.fsPath ?? "";
      const { detail, running } = describe(status, path, this.client.python);
      this.item.detail = detail;
      this.item.busy = running;
      if (running) this.settling = setTimeout(() => void this.ask(), SETTLE_MS);
    } catch {
      // the next change asks again
    }
  }
}

function describe(status: Status, path: string, python: string): { detail: string; running: boolean } {
  const file = status.compile[path];
  if (!file) return { detail: `${status.version}, ${python}`, running: false };
  if (file.running) return { detail: `compiling ${basename(path)}`, running: true };
  if (file.problem) return { detail: file.problem, running: false };
  const made = file.libraries.map((library) => basename(library)).join(", ");
  const refused = file.refusals.length ? `; ${file.refusals.length} refused` : "";
  const stale = file.stale ? ", of an older text" : "";
  return {
    detail: made ? `${made} in ${file.seconds.toFixed(1)} s${stale}${refused}` : `nothing compiled${refused}`,
    running: false,
  };
}
