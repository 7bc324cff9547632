// Inside VS Code: the extension answers by messages (messages.ts); its half is vscode-extension/src/panelHost.ts. A hidden webview is destroyed, so nothing is kept here but what `save` was given.
import type { Host, Payload, Settings } from "../host.ts";
import type { ToExtension, ToPanel } from "../messages.ts";
import type { Place, Position, ViewRequest } from "../protocol.ts";

interface State {
  readonly request: ViewRequest;
  readonly arranged?: unknown;
}

declare function acquireVsCodeApi(): {
  postMessage(message: ToExtension): void;
  getState(): State | undefined;
  setState(state: State): void;
};

export class VsCodeHost implements Host {
  readonly hasEditor = true;
  readonly panels = [];
  private readonly api = acquireVsCodeApi();
  private readonly answers = new Map<number, { resolve(payload: Payload): void; reject(problem: Error): void }>();
  private readonly cursors: ((path: string, position: Position) => void)[] = [];
  private readonly changes: ((path: string) => void)[] = [];
  private readonly shows: ((request: ViewRequest) => void)[] = [];
  private readonly settings: ((settings: Settings) => void)[] = [];
  private asked = 0;
  request: ViewRequest = { panel: "", path: "", position: null, function: "" };

  /** Resolves when the extension has said what to show. */
  static open(): Promise<VsCodeHost> {
    const host = new VsCodeHost();
    return new Promise((resolve) => {
      window.addEventListener("message", ({ data }: MessageEvent<ToPanel>) => {
        if (data.type === "start") {
          host.remember(data.request);
          resolve(host);
        } else host.receive(data);
      });
      host.api.postMessage({ type: "ready" });
    });
  }

  async files(): Promise<readonly string[]> {
    return [];
  }

  view(request: ViewRequest): Promise<Payload> {
    const id = ++this.asked;
    return new Promise<Payload>((resolve, reject) => {
      this.answers.set(id, { resolve, reject });
      this.api.postMessage({ type: "view", id, request });
    }).then((payload) => {
      this.remember({ panel: request.panel, path: payload.path, position: null, function: payload.function });
      return payload;
    });
  }

  reveal(place: Place): void {
    this.api.postMessage({ type: "reveal", place });
  }

  onCursor(listener: (path: string, position: Position) => void): void {
    this.cursors.push(listener);
  }

  onChanged(listener: (path: string) => void): void {
    this.changes.push(listener);
  }

  onShow(listener: (request: ViewRequest) => void): void {
    this.shows.push(listener);
  }

  onSettings(listener: (settings: Settings) => void): void {
    this.settings.push(listener);
  }

  restore(_panel: string): unknown {
    return this.api.getState()?.arranged;
  }

  save(_panel: string, arranged: unknown): void {
    this.api.setState({ request: this.request, arranged });
  }

  private remember(request: ViewRequest): void {
    this.request = request;
    this.api.setState({ request, arranged: this.api.getState()?.arranged });
  }

  private receive(message: Exclude<ToPanel, { type: "start" }>): void {
    if (message.type === "answer") {
      const waiting = this.answers.get(message.id);
      this.answers.delete(message.id);
      if (message.payload) waiting?.resolve(message.payload);
      else waiting?.reject(new Error(message.problem ?? "The language server gave no answer."));
    } else if (message.type === "cursor") for (const listener of this.cursors) listener(message.path, message.position);
    else if (message.type === "changed") for (const listener of this.changes) listener(message.path);
    else if (message.type === "show") for (const listener of this.shows) listener(message.request);
    else for (const listener of this.settings) listener(message.settings);
  }
}
