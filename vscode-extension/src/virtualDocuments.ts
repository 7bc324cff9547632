// Read-only documents of the scheme `cuvil:` that show a function at a stage: `cuvil:/path/model.py/attention.llvm`. The server
// writes the text; documents that are open follow the file they were made from.
import * as vscode from "vscode";
import type { Client } from "./client.ts";

const SETTLE_MS = 800;

export class VirtualDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly subscriptions: vscode.Disposable[];
  private settling: NodeJS.Timeout | undefined;
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: Client) {
    this.subscriptions = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider("cuvil", this),
      client.onViewChanged((path) => {
        clearTimeout(this.settling);
        this.settling = setTimeout(() => this.refresh(path), SETTLE_MS);
      }),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    try {
      return (await this.client.request<{ text: string }>("cuvil/virtualDocument", { uri: uri.toString() }, token))
        .text;
    } catch (problem) {
      return `# ${problem instanceof Error ? problem.message : String(problem)}\n`;
    }
  }

  async open(path: string, name: string, stage: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: "cuvil", path: `${vscode.Uri.file(path).path}/${name}.${stage}` });
    await vscode.window.showTextDocument(uri, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: true,
    });
  }

  dispose(): void {
    clearTimeout(this.settling);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private refresh(path: string): void {
    const folder = `${vscode.Uri.file(path).path}/`;
    for (const { uri } of vscode.workspace.textDocuments) {
      if (uri.scheme === "cuvil" && uri.path.startsWith(folder)) this.changed.fire(uri);
    }
  }
}
