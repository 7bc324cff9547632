// Drilldown: what did my line become? Seven layers side by side, from source to assembly, linked by lineage. Pick something
// anywhere and everything it came from and everything made of it lights up in the other columns.
import { ColumnView } from "../column.ts";
import { button, h } from "../element.ts";
import { type Content, Frame } from "../frame.ts";
import { GraphView } from "../graph.ts";
import { HelpCard } from "../help.ts";
import type { Host } from "../host.ts";
import { Lineage } from "../lineage.ts";
import type { Column, ColumnElement, DrilldownPayload, Position } from "../protocol.ts";
import { SelectionBroker } from "../selection.ts";
import { SideCard } from "../side-card.ts";

const READABLE_WIDTH = 330; // pixels a column wants; as many are opened at first as find that
// Which ones, most asked for first.
const FIRST = ["source", "ir", "loop", "asm", "cst", "kernel", "llvm"];
const FIRST_BESIDE_EDITOR = ["ir", "loop", "asm", "llvm", "cst", "kernel", "source"];

interface Arranged {
  readonly columns?: readonly string[];
  readonly graph?: boolean;
  readonly depth?: number;
}

export function mount(root: HTMLElement, host: Host): void {
  const drilldown = new Drilldown(root, host);
  const frame = new Frame<DrilldownPayload>(root, "drilldown", host, drilldown);
  drilldown.start(frame);
}

class Drilldown implements Content<DrilldownPayload> {
  private readonly broker: SelectionBroker;
  private readonly columns = new Map<string, ColumnView>();
  private readonly card: SideCard;
  private readonly help = new HelpCard(HELP);
  private readonly crumbs = h("nav", { class: "crumbs", "aria-label": "Selection" });
  private readonly strip = h("div", { class: "strip" });
  private readonly toggles = h("div", { class: "toggles", role: "group", "aria-label": "Columns" });
  private readonly search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search all columns" });
  private readonly found = h("span", { class: "found", role: "status" });
  private readonly depthLabel = h("span", { class: "depth" });
  private readonly graph: GraphView;
  private readonly graphSwitch: HTMLButtonElement;
  private payload: DrilldownPayload | undefined;
  private lineage = new Lineage([], {});
  private shown: readonly string[] | undefined;
  private asGraph = false;
  private depth: number | undefined; // set by hand here; else the setting's
  private settingDepth = 3;
  private matches: ColumnElement[] = [];
  private match = -1;

  constructor(
    private readonly root: HTMLElement,
    private readonly host: Host,
  ) {
    const arranged = (host.restore("drilldown") ?? {}) as Arranged;
    this.shown = arranged.columns;
    this.asGraph = arranged.graph ?? false;
    this.depth = arranged.depth;
    this.broker = new SelectionBroker(this.depth ?? 3);
    this.card = new SideCard((place) => host.reveal(place));
    this.graph = new GraphView("Tensor IR as a graph", {
      pick: (id) => this.pick(id, "ir", true),
      point: (at) => this.broker.hover(at && "node" in at ? [at.node.id] : [], "ir"),
      open: (id) => this.openEverywhere(id),
    });
    this.graphSwitch = button("Show the tensor IR as a graph", "Graph", () => this.setGraph(!this.asGraph), {
      class: "switch",
    });
    this.broker.onChange((kind) => this.showSelection(kind));
    host.onSettings(({ highlightDepth }) => {
      if (this.depth === undefined) this.setDepth(highlightDepth, false);
    });
  }

  start(frame: Frame<DrilldownPayload>): void {
    frame.toolbar.append(
      this.toggles,
      h("span", { class: "stretch" }),
      h(
        "span",
        { class: "stepper", title: "How many layers away from the selection are highlighted" },
        button("Highlight one layer less", "−", () => this.setDepth(this.reach() - 1, true)),
        this.depthLabel,
        button("Highlight one layer more", "+", () => this.setDepth(this.reach() + 1, true)),
      ),
      this.search,
      this.found,
      button("Keys and mouse", "?", () => this.help.toggle()),
    );
    frame.content.classList.add("drilldown");
    frame.content.append(this.crumbs, this.strip, this.card.element, this.help.element);
    this.setDepth(this.reach(), false);
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.goToMatch(event.shiftKey ? -1 : 1);
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    void frame.show(this.host.request);
  }

  draw(payload: DrilldownPayload, fresh: boolean): void {
    this.payload = payload;
    this.lineage = new Lineage(payload.columns, payload.origins);
    this.shown ??= firstColumns(payload.columns, this.strip.clientWidth, this.host.hasEditor);
    for (const column of payload.columns) {
      const view = this.columns.get(column.id);
      if (view) view.load(column, fresh);
      else this.columns.set(column.id, this.makeColumn(column));
    }
    this.graph.groupTitle = (id) => this.lineage.element(id)?.text ?? id;
    this.graph.load(payload.graph, fresh);
    this.arrange();
    this.broker.load(this.lineage);
    this.find();
  }

  cursor(position: Position): void {
    const id = this.lineage.at(this.payload!.path, position);
    this.broker.pick(id ? [id] : [], "editor");
  }

  private makeColumn(column: Column): ColumnView {
    const view = new ColumnView(column, this.broker, {
      pick: (element, from, character) => {
        this.pick(element.id, from.id, true);
        this.showScope(element, from, character);
      },
      hover: (element, from) => this.broker.hover(element ? [element.id] : [], from.id),
      open: (element, from) => {
        if (this.columns.get(from.id)!.isParent(element.id)) this.columns.get(from.id)!.toggleSubtree(element.id);
        else this.openEverywhere(element.id);
      },
    });
    if (column.id === "ir") {
      view.tools.append(this.graphSwitch);
      view.body.append(this.graph.element);
    }
    return view;
  }

  /** Opens what an element contains: its own subtree where it is a parent, and its syntax where it came from. */
  private openEverywhere(id: string): void {
    for (const [column, ids] of this.lineage.trace([id], 6)) {
      if (column !== "cst" && column !== this.lineage.layer(id)) continue;
      const first = [...ids].find((at) => this.columns.get(column)?.isParent(at)) ?? [...ids][0];
      if (first) this.columns.get(column)?.openSubtree(first);
    }
    if (this.asGraph && this.columns.get("ir")?.isParent(id)) this.setGraph(false);
  }

  private pick(id: string, from: string, reveal: boolean): void {
    this.broker.pick([id], from);
    const place = reveal ? this.lineage.placed(id)?.place : undefined;
    if (place) this.host.reveal(place);
  }

  private showScope(element: ColumnElement, column: Column, character: number | undefined): void {
    let id: string | undefined = element.symbol ? element.id : undefined;
    if (column.id === "source" && character !== undefined && element.place) {
      const { line, column: start } = element.place.range.start;
      // A source row shows its line from the first column, or from where its place starts if the text does.
      const offset = element.text.startsWith(" ") ? 1 : start;
      id = this.lineage.symbolAt(element.place.path, { line, column: character + offset });
    }
    const scope = id ? this.payload?.scopes[id] : undefined;
    if (scope) this.card.show(scope);
    else this.card.hide();
  }

  private showSelection(kind: "picked" | "preview"): void {
    for (const view of this.columns.values()) view.show(kind);
    const { picked, preview } = this.broker;
    const set = (ids: readonly string[]) => new Set(ids);
    this.graph.mark(set(picked.ids), picked.linked.get("ir") ?? new Set(), preview.linked.get("ir") ?? new Set());
    if (kind === "preview") return;
    const target = [...(picked.linked.get("ir") ?? [])][0];
    if (target && picked.from !== "ir") this.graph.reveal(target);
    this.drawCrumbs(picked.ids[0]);
    document.body.dataset.picked = picked.ids.join(" ");
  }

  private drawCrumbs(id: string | undefined): void {
    if (!id) {
      this.crumbs.replaceChildren(
        h("span", { class: "hint" }, "Click a line or a node to follow it through every layer."),
      );
      return;
    }
    const column = this.payload?.columns.find((at) => at.id === this.lineage.layer(id));
    const chain = this.lineage.ancestry(id);
    const reason = chain.at(-1)?.note;
    this.crumbs.replaceChildren(
      h("span", { class: "layer" }, column?.title ?? ""),
      ...chain.map((element) =>
        button(`Select ${element.text.trim()}`, element.text.trim(), () => this.pick(element.id, "panel", true), {
          class: "crumb",
        }),
      ),
      ...(reason ? [h("span", { class: "reason" }, `no origin: ${reason}`)] : []),
    );
  }

  private arrange(): void {
    const all = this.payload?.columns ?? [];
    const shown = all.filter((column) => this.shown!.includes(column.id));
    this.toggles.replaceChildren(
      ...all.map((column, index) =>
        button(`${column.title} (${index + 1})`, column.title, () => this.toggleColumn(column.id), {
          "aria-pressed": String(this.shown!.includes(column.id)),
          "data-column": column.id,
        }),
      ),
    );
    this.strip.replaceChildren(...shown.map((column) => this.columns.get(column.id)!.element));
    this.setGraph(this.asGraph);
  }

  private toggleColumn(id: string): void {
    const shown = this.shown ?? [];
    this.shown = shown.includes(id) ? shown.filter((at) => at !== id) : [...shown, id];
    this.arrange();
    this.save();
  }

  private setGraph(asGraph: boolean): void {
    this.asGraph = asGraph;
    this.columns.get("ir")?.element.classList.toggle("as-graph", asGraph);
    this.graphSwitch.textContent = asGraph ? "Text" : "Graph";
    this.graphSwitch.title = `Show the tensor IR as ${asGraph ? "text" : "a graph"}`;
    this.save();
  }

  private reach(): number {
    return this.depth ?? this.settingDepth;
  }

  private setDepth(depth: number, byHand: boolean): void {
    const kept = Math.min(6, Math.max(0, depth));
    if (byHand) this.depth = kept;
    else this.settingDepth = kept;
    this.depthLabel.textContent = `depth ${kept}`;
    this.broker.setDepth(kept);
    if (byHand) this.save();
  }

  private find(): void {
    const wanted = this.search.value.trim().toLowerCase();
    this.match = -1;
    this.matches = [];
    for (const column of this.payload?.columns ?? []) {
      const here = wanted ? column.elements.filter((element) => element.text.toLowerCase().includes(wanted)) : [];
      if (this.shown?.includes(column.id)) this.matches.push(...here);
      this.columns.get(column.id)?.setMatches(new Set(here.map(({ id }) => id)));
    }
    this.found.textContent = wanted ? `${this.matches.length} found` : "";
  }

  private goToMatch(step: number): void {
    if (!this.matches.length) return;
    this.match = (this.match + step + this.matches.length) % this.matches.length;
    const { id } = this.matches[this.match]!;
    this.columns.get(this.lineage.layer(id)!)?.reveal(id);
    this.pick(id, "panel", false);
    this.found.textContent = `${this.match + 1} of ${this.matches.length}`;
  }

  private onKey(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape") {
      if (this.help.hide() || this.card.hide()) return;
      if (typing) this.search.value = "";
      this.find();
      this.broker.pick([], "panel");
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const column = /^[1-9]$/.test(event.key) ? this.payload?.columns[Number(event.key) - 1] : undefined;
    if (column) this.toggleColumn(column.id);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "?") this.help.toggle();
    else if (event.key === "g") this.setGraph(!this.asGraph);
    else if (event.key === "[") this.setDepth(this.reach() - 1, true);
    else if (event.key === "]") this.setDepth(this.reach() + 1, true);
    else return;
    event.preventDefault();
  }

  private save(): void {
    const { shown: columns, asGraph: graph, depth } = this;
    this.host.save("drilldown", {
      ...(columns ? { columns } : {}),
      graph,
      ...(depth === undefined ? {} : { depth }),
    } satisfies Arranged);
  }
}

/** As many columns as are readable side by side, two at least. */
function firstColumns(columns: readonly Column[], width: number, besideEditor: boolean): string[] {
  const wanted = (besideEditor ? FIRST_BESIDE_EDITOR : FIRST).slice(0, Math.max(2, Math.floor(width / READABLE_WIDTH)));
  return columns.map(({ id }) => id).filter((id) => wanted.includes(id));
}

const HELP = [
  ["Click, Enter", "select; the editor goes to where it came from"],
  ["Double click, Space", "open or close what is inside"],
  ["Click on a name", "its scopes and bindings"],
  ["↑ ↓ PgUp PgDn Home End", "walk through a column"],
  ["← →", "close, open; in a graph: walk"],
  ["n, N", "next, previous linked line"],
  ["Tab", "next column"],
  ["1 … 7", "show or hide a column"],
  ["g", "tensor IR as text or graph"],
  ["[ ]", "highlight fewer or more layers"],
  ["/", "search, Enter for the next"],
  ["Esc", "close, clear"],
] as const;
