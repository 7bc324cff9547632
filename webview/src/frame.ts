// What every panel has around its content: the function picker, the stale marker, the line for trouble, and the life of a
// payload (ask, draw, keep the last good one). A panel hands it a `draw` and gets called when there is something to draw.
import { button, h } from "./element.ts";
import type { Host, Payload } from "./host.ts";
import type { Position, ViewRequest } from "./protocol.ts";

export interface Content<P extends Payload> {
  /** `fresh` is true for another function, false for a newer version of the one already shown. */
  draw(payload: P, fresh: boolean): void;
  /** The cursor rests at a place of the file that is shown. */
  cursor(position: Position): void;
}

export class Frame<P extends Payload> {
  readonly toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Panel" });
  readonly content = h("main", { class: "content" });
  private readonly files = h("select", { "aria-label": "File", hidden: true });
  private readonly functions = h("select", { "aria-label": "Function" });
  private readonly pin = button(
    "Stay with this function when the cursor moves to another one",
    "Pin",
    () => this.setPinned(!this.pinned),
    { "aria-pressed": "false" },
  );
  private readonly stale = h(
    "p",
    { class: "banner stale", role: "status", hidden: true },
    "The newest text cannot be shown yet; this is the last version that could.",
  );
  private readonly trouble = h("p", { class: "banner trouble", role: "alert", hidden: true });
  private payload: P | undefined;
  private pinned = false;
  private asked = 0;
  private early: { path: string; position: Position } | undefined; // where the cursor was before there was anything to show

  constructor(
    root: HTMLElement,
    private readonly panel: P["panel"],
    private readonly host: Host,
    private readonly inside: Content<P>,
  ) {
    this.functions.addEventListener("change", () => {
      void this.show({
        panel,
        path: this.payload?.path ?? host.request.path,
        position: null,
        function: this.functions.value,
      });
    });
    this.files.addEventListener("change", () => {
      void this.show({ panel, path: this.files.value, position: null, function: "" });
    });
    host.files().then(
      (paths) => this.offerFiles(paths),
      () => {}, // the function picker still works
    );
    this.toolbar.append(this.files, this.functions, this.pin);
    root.replaceChildren(this.toolbar, this.stale, this.trouble, this.content);
    host.onChanged((path) => {
      if (this.payload && (path === "" || path === this.payload.path)) void this.again();
    });
    host.onShow((request) => void this.show(request));
    host.onCursor((path, position) => this.cursor(path, position));
  }

  /** Asks for a payload and draws it. Only the newest question counts; a failed one leaves what is there. */
  async show(request: ViewRequest, quiet = false): Promise<void> {
    const mine = ++this.asked;
    document.body.toggleAttribute("data-busy", true);
    try {
      const payload = (await this.host.view({ ...request, panel: this.panel })) as P;
      if (mine !== this.asked) return;
      const fresh = payload.function !== this.payload?.function || payload.path !== this.payload?.path;
      this.payload = payload;
      this.trouble.hidden = true;
      this.files.value = payload.path;
      this.stale.hidden = !payload.stale;
      document.body.toggleAttribute("data-stale", payload.stale);
      const names = payload.functions.includes(payload.function)
        ? payload.functions
        : [payload.function, ...payload.functions];
      this.functions.replaceChildren(
        ...names.map((name) => h("option", { value: name, selected: name === payload.function }, name)),
      );
      document.body.toggleAttribute("data-shown", true);
      this.inside.draw(payload, fresh);
      if (request.position && this.holds(request.position)) this.inside.cursor(request.position);
      const { early } = this;
      this.early = undefined;
      if (early) this.cursor(early.path, early.position);
    } catch (problem) {
      if (mine !== this.asked || (quiet && this.payload)) return;
      this.trouble.textContent = problem instanceof Error ? problem.message : String(problem);
      this.trouble.hidden = false;
    } finally {
      if (mine === this.asked) {
        document.body.toggleAttribute("data-busy", false);
        document.body.dataset.ready = "1";
      }
    }
  }

  async again(): Promise<void> {
    if (!this.payload) return this.show(this.host.request);
    return this.show({ panel: this.panel, path: this.payload.path, position: null, function: this.payload.function });
  }

  setPinned(pinned: boolean): void {
    this.pinned = pinned;
    this.pin.setAttribute("aria-pressed", String(pinned));
  }

  private offerFiles(paths: readonly string[]): void {
    this.files.replaceChildren(...paths.map((path) => h("option", { value: path }, path)));
    this.files.hidden = paths.length < 2;
    if (this.payload) this.files.value = this.payload.path;
  }

  private cursor(path: string, position: Position): void {
    if (!this.payload) {
      this.early = { path, position };
      return;
    }
    if (path === this.payload.path && this.holds(position)) this.inside.cursor(position);
    else if (!this.pinned) void this.follow(path, position);
  }

  private async follow(path: string, position: Position): Promise<void> {
    await this.show({ panel: this.panel, path, position, function: "" }, true);
  }

  private holds({ line }: Position): boolean {
    const [first, last] = linesOf(this.payload!);
    return line >= first && line <= last;
  }
}

/** The first and last source line a payload is about. Lines of helpers may follow those of the function itself. */
function linesOf(payload: Payload): [number, number] {
  if (payload.panel === "heatmap") return [payload.first_line, payload.first_line + payload.source.length - 1];
  const lines = payload.columns.find(({ id }) => id === "source")?.elements.map(({ place }) => place?.range.start.line);
  const first = lines?.[0] ?? 1;
  const end = lines?.findIndex((line, i) => line !== first + i) ?? 0;
  return [first, first + (end < 0 ? lines!.length : end) - 1];
}
