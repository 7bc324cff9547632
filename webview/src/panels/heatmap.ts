// Fusion heatmap: where does the work go, and what did not fuse? Source lines and the graph of kernels, coloured by one
// metric; edges say whether a value passes through memory, and why. A table says the same to people who do not see colours.
import { colourAt, css, inkOn, kindOf } from "../colour.ts";
import { button, h } from "../element.ts";
import { type Content, Frame } from "../frame.ts";
import { GraphView, type Paint } from "../graph.ts";
import { HelpCard } from "../help.ts";
import type { Host } from "../host.ts";
import { legend } from "../legend.ts";
import { describe } from "../legend-text.ts";
import type { GraphEdge, GraphNode, Heat, HeatmapPayload, Metric, Position } from "../protocol.ts";
import { tokens } from "../tokens.ts";
import { VirtualList } from "../virtual-list.ts";

const ROW_HEIGHT = 22;
const UNKNOWN: Heat = { value: null, position: null, label: "unknown", formula: "" };

interface Arranged {
  readonly metric?: string;
  readonly table?: boolean;
}

export function mount(root: HTMLElement, host: Host): void {
  const heatmap = new Heatmap(host);
  heatmap.start(new Frame<HeatmapPayload>(root, "heatmap", host, heatmap));
}

class Heatmap implements Content<HeatmapPayload> {
  private readonly metrics = h("div", { class: "toggles", role: "group", "aria-label": "Metric" });
  private readonly key = h("div", { class: "key-line" });
  private readonly problem = h("p", { class: "banner trouble", hidden: true });
  private readonly lines: VirtualList;
  private readonly graph: GraphView;
  private readonly card = h("div", { class: "heat-card", role: "status", hidden: true });
  private readonly table = h("div", { class: "table-twin" });
  private readonly help = new HelpCard(HELP);
  private readonly tableSwitch = button("Show the numbers as a table", "Table", () => this.setTable(!this.asTable), {
    "aria-pressed": "false",
  });
  private payload: HeatmapPayload | undefined;
  private metricId: string;
  private asTable: boolean;
  private picked: ReadonlySet<string> = new Set();
  private preview: ReadonlySet<string> = new Set();
  private line: number | undefined; // the picked source line
  private active = 0;

  constructor(private readonly host: Host) {
    const arranged = (host.restore("heatmap") ?? {}) as Arranged;
    this.metricId = arranged.metric ?? "intensity";
    this.asTable = arranged.table ?? false;
    this.lines = new VirtualList(ROW_HEIGHT, (index) => this.drawLine(index), {
      class: "heat-lines layer-source",
      role: "listbox",
      tabindex: 0,
      "aria-label": "Source lines",
    });
    this.graph = new GraphView("Kernels and values", {
      pick: (id) => this.pick(id),
      point: (at, where) => this.point(at, where),
      open: (id) => this.pick(id),
    });
    this.graph.paint = (id) => this.paintOf(id);
    this.graph.groupTitle = (id) =>
      this.payload?.graph.nodes.find((node) => node.id === id)?.title ?? id.replace(/^kernel:/, "");
    this.lines.element.addEventListener("click", (event) => this.pickLine(indexAt(event)));
    this.lines.element.addEventListener("mousemove", (event) => this.hoverLine(indexAt(event)));
    this.lines.element.addEventListener("mouseleave", () => this.hoverLine(undefined));
    this.lines.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  start(frame: Frame<HeatmapPayload>): void {
    frame.toolbar.append(
      this.metrics,
      h("span", { class: "stretch" }),
      this.tableSwitch,
      button("Keys and mouse", "?", () => this.help.toggle()),
    );
    frame.content.classList.add("heatmap");
    frame.content.append(
      this.key,
      this.problem,
      h(
        "div",
        { class: "heat-main" },
        h("section", { class: "heat-source" }, this.lines.element),
        h("section", { class: "heat-graph" }, this.graph.element),
        this.table,
      ),
      this.card,
      this.help.element,
    );
    frame.content.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.help.hide()) this.select(new Set(), undefined);
      else if (event.key === "?") this.help.toggle();
      else if (event.key === "t" && !event.ctrlKey && !event.metaKey) this.setTable(!this.asTable);
    });
    void frame.show(this.host.request);
  }

  draw(payload: HeatmapPayload, fresh: boolean): void {
    this.payload = payload;
    if (fresh) {
      // Drawn below: the lines of the function before must not be drawn once more, there may be fewer now.
      this.picked = new Set();
      this.line = undefined;
      this.active = 0;
    }
    this.problem.textContent = payload.problem;
    this.problem.hidden = !payload.problem;
    this.graph.load(payload.graph, fresh);
    this.drawMetric();
  }

  cursor({ line }: Position): void {
    const ids = this.idsOn(line);
    this.select(ids, line);
    const first = [...ids][0];
    if (first) this.graph.reveal(first);
    this.lines.reveal(line - this.payload!.first_line);
  }

  private metric(): Metric | undefined {
    return this.payload?.metrics.find(({ id }) => id === this.metricId) ?? this.payload?.metrics[0];
  }

  private lineHeat(line: number): Heat | undefined {
    return this.payload?.lines[this.metric()?.id ?? ""]?.find((at) => at.line === line)?.heat;
  }

  private paintOf(id: string): Paint {
    const metric = this.metric();
    if (!metric || !this.payload) return { fill: undefined, ink: undefined, kind: "plain", value: "" };
    const heat = this.payload.values[metric.id]?.[id];
    if (!heat) return { fill: undefined, ink: undefined, kind: "plain", value: "" }; // a return has no work: not unknown
    const kind = kindOf(heat.value, heat.position);
    if (kind !== "value") return { fill: undefined, ink: undefined, kind, value: heat.label };
    const colour = colourAt(metric.scale, heat.position!);
    return { fill: css(colour), ink: inkOn(colour), kind, value: heat.label };
  }

  private drawMetric(): void {
    const { payload } = this;
    const metric = this.metric();
    if (!payload) return;
    this.metrics.replaceChildren(
      ...payload.metrics.map(({ id, title, unit }) =>
        button(`Colour by ${title.toLowerCase()}, in ${unit}`, title, () => this.setMetric(id), {
          "aria-pressed": String(id === metric?.id),
        }),
      ),
    );
    this.key.replaceChildren(
      ...(metric ? [legend(metric, payload.machine)] : []),
      h(
        "span",
        { class: "edge-key" },
        h("span", { class: "edge-sample fused" }),
        "fused",
        h("span", { class: "edge-sample through-memory" }),
        "through memory",
      ),
      h(
        "span",
        { class: "machine", title: `The ridge point belongs to: ${payload.machine}` },
        payload.machine.split(":")[0],
      ),
    );
    this.lines.reset(payload.source.length, Math.max(0, ...payload.source.map((text) => text.length)) + 24);
    this.setTable(this.asTable);
    this.mark();
  }

  private drawLine(index: number): HTMLElement {
    const { payload } = this;
    const line = payload!.first_line + index;
    const heat = this.lineHeat(line);
    const classes = ["row"];
    if (this.line === line) classes.push("picked");
    // By its operations alone: a kernel comes from many lines, and would link each of them to all others.
    const ops = [...this.idsOn(line)].filter((id) => !this.graph.isGroup(id));
    if (ops.some((id) => this.picked.has(id))) classes.push("linked");
    if (ops.some((id) => this.preview.has(id))) classes.push("preview");
    if (index === this.active) classes.push("active");
    const chip = h(
      "span",
      { class: `chip ${heat ? kindOf(heat.value, heat.position) : "none"}`, title: heat?.label },
      heat?.label ?? "",
    );
    if (heat && kindOf(heat.value, heat.position) === "value") {
      const colour = colourAt(this.metric()!.scale, heat.position!);
      chip.style.backgroundColor = css(colour);
      chip.classList.add(`ink-${inkOn(colour)}`);
    }
    const text = h("span", { class: "text" });
    for (const token of tokens("source", payload!.source[index]!)) {
      text.append(token.kind === "plain" ? token.text : h("span", { class: `t-${token.kind}` }, token.text));
    }
    return h(
      "div",
      {
        id: `heat-line-${index}`,
        class: classes.join(" "),
        role: "option",
        "aria-selected": String(this.line === line),
        "aria-setsize": payload!.source.length,
        "aria-posinset": index + 1,
        "data-index": index,
        title: heat?.formula ? `${heat.label} = ${heat.formula}` : null,
      },
      chip,
      h("span", { class: "line-number", "aria-hidden": "true" }, String(line)),
      text,
    );
  }

  private setMetric(id: string): void {
    this.metricId = id;
    this.drawMetric();
    this.save();
  }

  private setTable(asTable: boolean): void {
    this.asTable = asTable;
    this.tableSwitch.setAttribute("aria-pressed", String(asTable));
    this.table.classList.toggle("for-screen-readers", !asTable);
    this.table.parentElement?.classList.toggle("as-table", asTable);
    if (this.payload) this.table.replaceChildren(...tables(this.payload, (id) => this.pick(id)));
    this.save();
  }

  private save(): void {
    this.host.save("heatmap", { metric: this.metricId, table: this.asTable } satisfies Arranged);
  }

  private idsOn(line: number): Set<string> {
    const ids = new Set<string>();
    for (const [id, places] of Object.entries(this.payload?.places ?? {})) {
      if (
        places.some(
          ({ path, range }) => path === this.payload!.path && range.start.line <= line && line <= range.end.line,
        )
      )
        ids.add(id);
    }
    return ids;
  }

  private pick(id: string): void {
    const place = this.payload?.places[id]?.[0];
    this.select(new Set([id]), undefined);
    if (place) {
      this.lines.reveal(place.range.start.line - this.payload!.first_line);
      this.host.reveal(place);
    }
  }

  private pickLine(index: number | undefined): void {
    if (index === undefined || !this.payload) return;
    this.active = index;
    const { path, first_line, source } = this.payload;
    const line = first_line + index;
    const ids = this.idsOn(line);
    this.select(ids, line);
    const first = [...ids][0];
    if (first) this.graph.reveal(first);
    const text = source[index] ?? "";
    const start = text.length - text.trimStart().length + 1;
    this.host.reveal({ path, range: { start: { line, column: start }, end: { line, column: start } } });
  }

  private select(ids: ReadonlySet<string>, line: number | undefined): void {
    this.picked = ids;
    this.line = line;
    document.body.dataset.picked = [...ids].join(" ");
    this.mark();
  }

  private hoverLine(index: number | undefined): void {
    this.preview = index === undefined ? new Set() : this.idsOn(this.payload!.first_line + index);
    this.graph.mark(this.picked, this.picked, this.preview);
  }

  private mark(): void {
    this.graph.mark(this.picked, this.picked, this.preview);
    this.lines.redraw();
  }

  private onKey(event: KeyboardEvent): void {
    const last = (this.payload?.source.length ?? 1) - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      this.active = Math.min(last, Math.max(0, to));
      this.lines.nudge(this.active);
      this.lines.redraw();
      this.lines.element.setAttribute("aria-activedescendant", `heat-line-${this.active}`);
      this.hoverLine(this.active);
    } else if (event.key === "Enter") this.pickLine(this.active);
    else return;
    event.preventDefault();
  }

  private point(
    at: Parameters<ConstructorParameters<typeof GraphView>[1]["point"]>[0],
    where: DOMRect | undefined,
  ): void {
    const before = this.preview;
    this.preview = new Set(at && "node" in at ? [at.node.id] : []);
    if (before.size || this.preview.size) this.lines.redraw();
    const content =
      at && ("node" in at ? this.nodeCard(at.node) : "edge" in at ? edgeCard(at.edge, this.payload!) : undefined);
    this.card.hidden = !content;
    if (!content || !where) return;
    this.card.replaceChildren(...content);
    const frame = this.card.parentElement!.getBoundingClientRect();
    // Beside what it is about: to the right if there is room, else to the left.
    const right = where.right - frame.left + 10;
    const left =
      right + this.card.offsetWidth <= frame.width - 8 ? right : where.left - frame.left - this.card.offsetWidth - 10;
    const top = Math.min(where.top - frame.top, frame.height - this.card.offsetHeight - 8);
    this.card.style.left = `${Math.max(8, left)}px`;
    this.card.style.top = `${Math.max(8, top)}px`;
  }

  private nodeCard(node: GraphNode): HTMLElement[] {
    const { payload } = this;
    const numbers = payload!.metrics.map((metric) => {
      const heat = payload!.values[metric.id]?.[node.id] ?? UNKNOWN;
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, metric.title),
        h("td", {}, heat.label),
        h("td", { class: "formula" }, heat.formula),
      );
    });
    const edges = payload!.graph.edges.filter(({ source, target }) => source === node.id || target === node.id);
    return [
      h("strong", {}, node.title),
      h("p", { class: "detail" }, node.detail),
      h("table", {}, h("tbody", {}, ...numbers)),
      ...edges
        .slice(0, 6)
        .map((edge) =>
          h(
            "p",
            { class: edge.fused ? "fused" : "through-memory" },
            h("span", { class: `edge-sample ${edge.fused ? "fused" : "through-memory"}` }),
            `${edge.source === node.id ? "to" : "from"} ${titleOf(edge.source === node.id ? edge.target : edge.source, payload!)}: ${edge.reason || (edge.fused ? "fused" : "through memory")}`,
          ),
        ),
    ];
  }
}

const indexAt = (event: Event): number | undefined => {
  const row = (event.target as Element).closest<HTMLElement>(".row");
  return row ? Number(row.dataset.index) : undefined;
};

const titleOf = (id: string, payload: HeatmapPayload): string =>
  payload.graph.nodes.find((node) => node.id === id)?.title ?? id;

function edgeCard(edge: GraphEdge, payload: HeatmapPayload): HTMLElement[] {
  return [
    h("strong", {}, edge.fused ? "Fused" : "Through memory"),
    h("p", { class: "detail" }, `${titleOf(edge.source, payload)} → ${titleOf(edge.target, payload)}`),
    h("p", {}, h("code", {}, edge.label)),
    h("p", { class: "why" }, edge.reason),
  ];
}

/** The same numbers and reasons as tables: nodes with every metric, then edges. */
function tables(payload: HeatmapPayload, pick: (id: string) => void): HTMLElement[] {
  const head = (...names: string[]) =>
    h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name))));
  const first = (id: string) => payload.places[id]?.[0]?.range.start.line;
  return [
    h("p", { class: "caption" }, payload.metrics.map((metric) => describe(metric, payload.machine)).join(" ")),
    h(
      "table",
      {},
      h("caption", {}, `Operations of ${payload.function}`),
      head("Operation", "Kernel", "Line", ...payload.metrics.map(({ title, unit }) => `${title} (${unit})`)),
      h(
        "tbody",
        {},
        ...payload.graph.nodes
          .filter((node) => payload.metrics.some(({ id }) => payload.values[id]?.[node.id]))
          .map((node) =>
            h(
              "tr",
              {},
              h(
                "th",
                { scope: "row" },
                button(`Go to ${node.title}`, node.title, () => pick(node.id), { class: "link" }),
              ),
              h("td", {}, node.group ? titleOf(node.group, payload) : ""),
              h("td", { class: "number" }, String(first(node.id) ?? "")),
              ...payload.metrics.map(({ id }) =>
                h("td", { class: "number" }, (payload.values[id]?.[node.id] ?? UNKNOWN).label),
              ),
            ),
          ),
      ),
    ),
    h(
      "table",
      {},
      h("caption", {}, "Values between operations"),
      head("From", "To", "Type", "Fused", "Why"),
      h(
        "tbody",
        {},
        ...payload.graph.edges.map((edge) =>
          h(
            "tr",
            {},
            h("td", {}, titleOf(edge.source, payload)),
            h("td", {}, titleOf(edge.target, payload)),
            h("td", {}, h("code", {}, edge.label)),
            h("td", {}, edge.fused ? "fused" : "through memory"),
            h("td", {}, edge.reason),
          ),
        ),
      ),
    ),
  ];
}

const HELP = [
  ["Click, Enter", "select; the editor goes to where it came from"],
  ["Hover, arrows in the graph", "numbers, and why a value was fused or not"],
  ["Wheel, + −", "zoom; drag to move; 0 shows everything"],
  ["↑ ↓", "walk through the source lines"],
  ["t", "the same as a table"],
  ["Esc", "close, clear"],
] as const;
