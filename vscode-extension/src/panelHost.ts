// One host for all panels: a page with a strict policy, payloads fetched for it from the language server, places revealed for it in
// the editor. It knows nothing of what a panel draws. A hidden panel's page is destroyed and made anew when it is shown
// again (that costs 0.2 s and no memory); what it showed is in the state that the page keeps itself.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Payload } from "../../webview/src/host.ts";
import type { ToExtension, ToPanel } from "../../webview/src/messages.ts";
import type { Place, ViewRequest } from "../../webview/src/protocol.ts";
import type { Client } from "./client.ts";
import { toCuvil, toRange } from "./place.ts";

/** Panels by the id that the server and the bundle know them by. Adding one: a line here, a command in package.json. */
export const PANELS = { drilldown: "Cuvil Drilldown", heatmap: "Cuvil Fusion Heatmap" } as const;
export type PanelId = keyof typeof PANELS;

const REST_MS = 120; // the cursor rests when it has not moved for this long
const SETTLE_MS = 500; // a text is worth drawing when it has not changed for this long

export class PanelHost implements vscode.Disposable {
  private readonly open = new Map<PanelId, Panel>();
  private readonly subscriptions: vscode.Disposable[];
  private readonly changedVisibility = new vscode.EventEmitter<void>();
  private resting: NodeJS.Timeout | undefined;
  private readonly settling = new Map<string, NodeJS.Timeout>();
  private revealed: { readonly uri: string; readonly range: vscode.Range } | undefined; // ours; its cursor is no news to a panel

  /** Fires when a panel is shown, hidden or closed. */
  readonly onVisibility = this.changedVisibility.event;

  constructor(
    private readonly client: Client,
    private readonly extensionUri: vscode.Uri,
  ) {
    this.subscriptions = [
      this.changedVisibility,
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) =>
        this.cursorMoved(textEditor, selections[0]),
      ),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("cuvil.highlightDepth")) this.tell(settings());
      }),
      client.onViewChanged((path) => this.textChanged(path)),
      client.onHealth((health) => {
        if (health === "running") this.tell({ type: "changed", path: "" });
      }),
      ...(Object.keys(PANELS) as PanelId[]).map((id) =>
        vscode.window.registerWebviewPanelSerializer(`cuvil.${id}`, {
          deserializeWebviewPanel: async (panel, state: { request?: ViewRequest } | undefined) => {
            this.adopt(id, panel, state?.request ?? { panel: id, path: "", position: null, function: "" });
          },
        }),
      ),
    ];
  }

  /** Shows a panel beside the editor, for the function at the cursor or the one asked for. */
  show(id: PanelId, request: ViewRequest): void {
    const there = this.open.get(id);
    if (there) {
      there.panel.reveal(undefined, true);
      there.show(request);
      return;
    }
    const panel = vscode.window.createWebviewPanel(`cuvil.${id}`, PANELS[id], {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
    });
    this.adopt(id, panel, request);
  }

  isVisible(id: PanelId): boolean {
    return this.open.get(id)?.panel.visible ?? false;
  }

  dispose(): void {
    for (const { panel } of this.open.values()) panel.dispose();
    for (const subscription of this.subscriptions) subscription.dispose();
    clearTimeout(this.resting);
    for (const timer of this.settling.values()) clearTimeout(timer);
  }

  private adopt(id: PanelId, panel: vscode.WebviewPanel, request: ViewRequest): void {
    panel.iconPath = vscode.Uri.joinPath(this.extensionUri, "media/icon.png");
    this.open.set(
      id,
      new Panel(id, panel, request, this.client, this.extensionUri, (place) => void this.reveal(place)),
    );
    panel.onDidChangeViewState(() => this.changedVisibility.fire());
    panel.onDidDispose(() => {
      this.open.delete(id);
      this.changedVisibility.fire();
    });
    this.changedVisibility.fire();
  }

  private tell(message: ToPanel): void {
    for (const { panel } of this.open.values()) if (panel.visible) void panel.webview.postMessage(message);
  }

  private cursorMoved(editor: vscode.TextEditor, selection: vscode.Selection | undefined): void {
    if (!selection || !this.open.size || editor.document.languageId !== "python") return;
    const { document } = editor;
    const ours = this.revealed?.uri === document.uri.toString() && this.revealed.range.isEqual(selection);
    this.revealed = undefined;
    clearTimeout(this.resting);
    if (ours) return;
    this.resting = setTimeout(() => {
      for (const panel of this.open.values()) panel.cursor(cursorOf(editor));
    }, REST_MS);
  }

  private textChanged(path: string): void {
    if (!this.open.size) return;
    clearTimeout(this.settling.get(path));
    this.settling.set(
      path,
      setTimeout(() => {
        this.settling.delete(path);
        this.tell({ type: "changed", path });
      }, SETTLE_MS),
    );
  }

  private async reveal(place: Place): Promise<void> {
    const uri = vscode.Uri.file(place.path);
    const document = await vscode.workspace.openTextDocument(uri);
    const selection = toRange(document, place);
    // The file may be open already: reuse that editor, and never cover the panel.
    const visible = vscode.window.visibleTextEditors.find(
      (editor) => editor.document.uri.toString() === uri.toString(),
    );
    const viewColumn = visible?.viewColumn ?? vscode.ViewColumn.One;
    this.revealed = { uri: uri.toString(), range: selection };
    const editor = await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, selection });
    editor.revealRange(selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
}

class Panel {
  private asking: vscode.CancellationTokenSource | undefined;
  private listening = false; // the page is there; it is not while the panel is hidden, and for a moment after
  private missed: ToPanel | undefined; // where the cursor went while it was not

  constructor(
    private readonly id: PanelId,
    readonly panel: vscode.WebviewPanel,
    private request: ViewRequest,
    private readonly client: Client,
    extensionUri: vscode.Uri,
    private readonly reveal: (place: Place) => void,
  ) {
    const files = vscode.Uri.joinPath(extensionUri, "dist/webview");
    panel.webview.options = { enableScripts: true, localResourceRoots: [files] };
    panel.onDidChangeViewState(() => {
      if (!panel.visible) this.listening = false;
    });
    panel.webview.onDidReceiveMessage((message: ToExtension) => void this.receive(message));
    panel.webview.html = page(panel.webview, files, id);
  }

  cursor(message: ToPanel): void {
    if (this.listening) this.post(message);
    else this.missed = message;
  }

  show(request: ViewRequest): void {
    this.request = request;
    this.post({ type: "show", request });
  }

  private async receive(message: ToExtension): Promise<void> {
    if (message.type === "reveal") this.reveal(message.place);
    else if (message.type === "view") await this.answer(message.id, message.request);
    else {
      this.listening = true;
      // Shown again, it selects what the cursor is on, if that is in its function; it goes elsewhere only if the cursor did.
      const editor = vscode.window.visibleTextEditors.find(({ document }) => document.uri.fsPath === this.request.path);
      const position = editor ? toCuvil(editor.document, editor.selection.active) : null;
      this.post({ type: "start", request: { ...this.request, position: this.request.position ?? position } });
      this.post(settings());
      if (this.missed) this.post(this.missed);
      this.missed = undefined;
    }
  }

  /** Only the newest question of a panel matters: an older one is cancelled at the server. */
  private async answer(id: number, request: ViewRequest): Promise<void> {
    this.asking?.cancel();
    const asking = new vscode.CancellationTokenSource();
    this.asking = asking;
    try {
      const payload = await this.client.request<Payload>("cuvil/view", { ...request, panel: this.id }, asking.token);
      this.request = { panel: this.id, path: payload.path, position: null, function: payload.function };
      this.post({ type: "answer", id, payload });
    } catch (problem) {
      this.post({ type: "answer", id, problem: problem instanceof Error ? problem.message : String(problem) });
    } finally {
      asking.dispose();
      if (this.asking === asking) this.asking = undefined;
    }
  }

  private post(message: ToPanel): void {
    void this.panel.webview.postMessage(message);
  }
}

function cursorOf({ document, selection }: vscode.TextEditor): ToPanel {
  return { type: "cursor", path: document.uri.fsPath, position: toCuvil(document, selection.active) };
}

function settings(): ToPanel {
  const highlightDepth = vscode.workspace.getConfiguration("cuvil").get<number>("highlightDepth", 3);
  return { type: "settings", settings: { highlightDepth } };
}

function page(webview: vscode.Webview, files: vscode.Uri, id: PanelId): string {
  const nonce = randomBytes(18).toString("base64url");
  const uri = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(files, name));
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${PANELS[id]}</title>
<link rel="stylesheet" href="${uri("panels.css")}"></head>
<body><div id="cuvil" data-panel="${id}"></div><script nonce="${nonce}" src="${uri("panels.js")}"></script></body></html>`;
}
