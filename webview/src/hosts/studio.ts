// The browser without VS Code: payloads come from the studio's own server on the loopback interface. Each request carries
// the token that the page was opened with. A file that changed on disk is noticed by asking for its version again.
import type { Host, Payload } from "../host.ts";
import { PageMemory } from "../page-memory.ts";
import type { PanelInfo, ViewRequest } from "../protocol.ts";

const LOOK_AGAIN_MS = 2000;

export class StudioHost implements Host {
  readonly hasEditor = false;
  private readonly changes: ((path: string) => void)[] = [];
  private readonly memory = new PageMemory("cuvil-studio");
  private version = "";

  private constructor(
    public request: ViewRequest,
    readonly panels: readonly PanelInfo[],
    private readonly token: string,
  ) {
    setInterval(() => void this.lookAgain(), LOOK_AGAIN_MS);
  }

  static async open(request: ViewRequest, token: string): Promise<StudioHost> {
    const panels = (await ask("api/panels", token)) as PanelInfo[];
    return new StudioHost(request, panels, token);
  }

  async view(request: ViewRequest): Promise<Payload> {
    const query = new URLSearchParams({ panel: request.panel, path: request.path, function: request.function });
    if (request.position) query.set("line", String(request.position.line));
    const payload = (await ask(`api/view?${query}`, this.token)) as Payload;
    this.version = payload.version;
    this.request = { panel: payload.panel, path: payload.path, position: null, function: payload.function };
    return payload;
  }

  async files(): Promise<readonly string[]> {
    const { files } = (await ask("api/functions", this.token)) as { files: { path: string; functions: string[] }[] };
    return files.filter(({ functions }) => functions.length).map(({ path }) => path);
  }

  reveal(): void {}
  onCursor(): void {}
  onSettings(): void {}

  onChanged(listener: (path: string) => void): void {
    this.changes.push(listener);
  }

  onShow(): void {}

  restore(panel: string): unknown {
    return this.memory.restore(panel);
  }

  save(panel: string, arranged: unknown): void {
    this.memory.save(panel, arranged);
  }

  private async lookAgain(): Promise<void> {
    if (document.hidden || !this.version) return;
    const { path } = this.request;
    try {
      const { version } = (await ask(`api/version?${new URLSearchParams({ path })}`, this.token)) as {
        version: string;
      };
      if (version === this.version) return;
      this.version = version;
      for (const listener of this.changes) listener(path);
    } catch {
      // the server is gone or busy: what is shown stays, and the next look may do better
    }
  }
}

async function ask(address: string, token: string): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(address, { headers: { "X-Cuvil-Token": token } });
  } catch {
    throw new Error("The studio does not answer. Is `cuvil studio` still running?");
  }
  const text = await answer.text();
  const data: unknown = text && (answer.headers.get("content-type") ?? "").includes("json") ? JSON.parse(text) : text;
  if (!answer.ok)
    throw new Error(
      typeof data === "object" && data && "error" in data ? String(data.error) : String(data) || answer.statusText,
    );
  return data;
}
