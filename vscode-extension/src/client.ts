// The connection to the language server: finds a Python, starts `python -m cuvil_lsp` over stdio, and says in one message with
// a button what to do when that cannot be. Everything else asks through `request` and never sees the protocol's client.
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import { candidates, find, onSelected, SAFE } from "./interpreter.ts";

export const PYTHON: vscode.DocumentSelector = { language: "python", scheme: "file" };
export type Health = "starting" | "running" | "stopped" | "not installed";

export class Client implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel("Cuvil");
  python = "";
  health: Health = "starting";
  private client: LanguageClient | undefined;
  private starting: Promise<void> = Promise.resolve();
  private asking = false; // a message about the set-up is open; there is never a second one
  private readonly subscriptions: vscode.Disposable[] = [this.log];
  private readonly changedHealth = new vscode.EventEmitter<Health>();
  private readonly changedView = new vscode.EventEmitter<string>();

  /** Fires when the server starts, stops, or cannot be found. */
  readonly onHealth = this.changedHealth.event;

  /** Fires with a file's path when payloads made for it are out of date; at every keystroke, so wait a little. */
  readonly onViewChanged = this.changedView.event;

  constructor() {
    this.subscriptions.push(
      this.changedHealth,
      this.changedView,
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("cuvil.interpreter")) void this.restart();
      }),
    );
    void onSelected(() => void this.restart()).then((subscription) => this.subscriptions.push(subscription));
  }

  start(): Promise<void> {
    this.starting = this.launch();
    return this.starting;
  }

  async restart(): Promise<void> {
    await this.starting.catch(() => {});
    await this.stop();
    await this.start();
  }

  /** Waits for the server and asks it. Rejects with an Error whose message is for people. */
  async request<Answer>(method: string, params: unknown, token?: vscode.CancellationToken): Promise<Answer> {
    await this.starting;
    if (!this.client) throw new Error("Cuvil's language server is not running. Try the command Cuvil: Restart Server.");
    // An undefined token would be sent along as a second parameter.
    return token
      ? this.client.sendRequest<Answer>(method, params, token)
      : this.client.sendRequest<Answer>(method, params);
  }

  async dispose(): Promise<void> {
    await this.stop();
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private async launch(): Promise<void> {
    this.setHealth("starting");
    const { python, tried } = await find();
    if (!python) {
      this.log.appendLine(`Cuvil is in none of these interpreters: ${tried.join(", ")}`);
      this.setHealth("not installed");
      void this.offerInstallation(tried);
      return;
    }
    this.python = python;
    this.log.appendLine(`Starting ${python} ${SAFE} -m cuvil_lsp`);
    const client = new LanguageClient(
      "cuvil",
      "Cuvil",
      { command: python, args: [SAFE, "-m", "cuvil_lsp"] },
      this.options(),
    );
    client.onDidChangeState(({ newState }) => {
      if (client === this.client && newState === State.Stopped) this.setHealth("stopped");
      if (client === this.client && newState === State.Running) this.setHealth("running");
    });
    client.onNotification("cuvil/viewChanged", ({ path }: { path: string }) => this.changedView.fire(path));
    this.client = client;
    try {
      await client.start();
    } catch (problem) {
      this.client = undefined;
      this.setHealth("stopped");
      this.log.appendLine(String(problem));
      void this.say(`Cuvil's language server did not start with ${python}.`, ["Show Log", "Select Interpreter"], tried);
    }
  }

  private async stop(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    if (client?.needsStop()) await client.stop(2000).catch(() => {});
    await client?.dispose().catch(() => {});
  }

  private options(): LanguageClientOptions {
    const settings = vscode.workspace.getConfiguration("cuvil");
    const given = ["compileOnSave", "inlayHints", "codeLens", "compileTimeout", "compileMemory"].map((name) => [
      name,
      settings.get(name),
    ]);
    return {
      documentSelector: [{ language: "python", scheme: "file" }],
      initializationOptions: { trusted: vscode.workspace.isTrusted, ...Object.fromEntries(given) },
      synchronize: {
        configurationSection: "cuvil",
        fileEvents: vscode.workspace.createFileSystemWatcher(
          "**/{pyproject.toml,requirements*.txt,uv.lock,poetry.lock}",
        ),
      },
      outputChannel: this.log,
      traceOutputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
    };
  }

  private setHealth(health: Health): void {
    this.health = health;
    void vscode.commands.executeCommand("setContext", "cuvil.running", health === "running");
    this.changedHealth.fire(health);
  }

  private offerInstallation(tried: readonly string[]): Promise<void> {
    const where = tried[0] ?? "python3";
    const buttons = vscode.workspace.isTrusted ? ["Install", "Select Interpreter"] : ["Manage Workspace Trust"];
    return this.say(`Cuvil is not installed for ${where}.`, buttons, tried);
  }

  private async say(message: string, buttons: readonly string[], tried: readonly string[]): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    const answer = await vscode.window.showWarningMessage(message, ...buttons);
    this.asking = false;
    if (answer === "Install") await this.install(tried[0] ?? "python3");
    else if (answer === "Select Interpreter") await this.selectInterpreter();
    else if (answer === "Show Log") this.log.show();
    else if (answer) await vscode.commands.executeCommand("workbench.trust.manage");
  }

  private async install(python: string): Promise<void> {
    const run = new vscode.ProcessExecution(python, ["-m", "pip", "install", "--upgrade", "cuvil"]);
    const task = new vscode.Task(
      { type: "cuvil", task: "install" },
      vscode.TaskScope.Workspace,
      "Install",
      "Cuvil",
      run,
    );
    const execution = await vscode.tasks.executeTask(task);
    const ended = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution !== execution) return;
      ended.dispose();
      if (event.exitCode === 0) void this.restart();
    });
  }

  /** Lets a person choose among the interpreters there are, or any other, and remembers it in `cuvil.interpreter`. */
  async selectInterpreter(): Promise<void> {
    const browse = "Choose another one…";
    const choice = await vscode.window.showQuickPick([...(await candidates()), browse], {
      placeHolder: "The Python interpreter that has Cuvil installed",
    });
    if (!choice) return;
    const python =
      choice === browse
        ? (await vscode.window.showOpenDialog({ title: "Python interpreter", canSelectMany: false }))?.[0]?.fsPath
        : choice;
    if (!python) return;
    const target =
      vscode.workspace.workspaceFolders && vscode.workspace.isTrusted
        ? vscode.ConfigurationTarget.Workspace
        : vscode.ConfigurationTarget.Global;
    await vscode.workspace.getConfiguration("cuvil").update("interpreter", python, target);
  }
}
