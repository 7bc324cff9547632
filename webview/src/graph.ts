// A laid-out graph as SVG, with pan, zoom and a keyboard. Only what is in view is in the document, so a graph of ten thousand
// nodes opens as fast as one of ten. Places come with the payload; nothing is laid out here.
import { button, h, s } from "./element.ts";
import type { Graph, GraphEdge, GraphNode } from "./protocol.ts";

const PADDING = 11; // around the members of a group, and around everything when fitted
const TITLE = 18; // height of a group's title, above its members
const LABELS_FROM = 0.45; // below this zoom, text would be too small to read and is not drawn
const EDGE_LABELS_FROM = 0.75;
const READABLE = 0.7; // the zoom a graph starts with that does not fit

export interface Paint {
  readonly fill: string | undefined; // undefined: the theme's own
  readonly ink: "dark" | "light" | undefined;
  readonly kind: "value" | "zero" | "unknown" | "plain";
  readonly value: string;
}

export interface GraphEvents {
  /** A node or group was picked by click or Enter. */
  pick(id: string): void;
  /** The mouse or the keyboard is on a node, on an edge, or on nothing. */
  point(
    at: { node: GraphNode } | { edge: GraphEdge } | { group: string } | undefined,
    where: DOMRect | undefined,
  ): void;
  open(id: string): void;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Group extends Box {
  readonly id: string;
}

const PLAIN: Paint = { fill: undefined, ink: undefined, kind: "plain", value: "" };
let instances = 0;

export class GraphView {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly layers = [0, 1, 2].map(() => s("g", { role: "presentation" })); // groups, edges, nodes
  private readonly world = s("g", { class: "world", role: "presentation" }, ...this.layers);
  private readonly drawn = new Map<unknown, SVGElement>();
  private detail = 0; // how much text the drawn elements have
  private readonly prefix = `g${instances++}`;
  private graph: Graph = { nodes: [], edges: [], width: 0, height: 0 };
  private nodes = new Map<string, GraphNode>();
  private groups = new Map<string, Group>();
  private edgeBoxes: Box[] = [];
  private view = { x: 0, y: 0, zoom: 1 };
  private fitted = false;
  private active: string | undefined;
  private picked: ReadonlySet<string> = new Set();
  private linked: ReadonlySet<string> = new Set();
  private preview: ReadonlySet<string> = new Set();
  private awaited = 0;
  paint: (id: string) => Paint = () => PLAIN;
  groupTitle: (id: string) => string = (id) => id;

  constructor(
    label: string,
    private readonly events: GraphEvents,
  ) {
    this.svg = s(
      "svg",
      { class: "graph", tabindex: 0, role: "listbox", "aria-label": label },
      s(
        "defs",
        {},
        s(
          "marker",
          {
            id: `${this.prefix}-arrow`,
            viewBox: "0 0 8 8",
            refX: 7,
            refY: 4,
            markerWidth: 7,
            markerHeight: 7,
            orient: "auto",
            markerUnits: "userSpaceOnUse",
          },
          s("path", { class: "arrow", d: "M0 0L8 4L0 8z" }),
        ),
        s(
          "pattern",
          {
            id: `${this.prefix}-unknown`,
            width: 7,
            height: 7,
            patternUnits: "userSpaceOnUse",
            patternTransform: "rotate(45)",
          },
          s("rect", { class: "hatch-ground", width: 7, height: 7 }),
          s("line", { class: "hatch-line", x1: 0, y1: 0, x2: 0, y2: 7 }),
        ),
      ),
      this.world,
    );
    this.element = h(
      "div",
      { class: "graph-view" },
      h(
        "div",
        { class: "graph-tools" },
        button("Zoom in", "+", () => this.zoomBy(1.25)),
        button("Zoom out", "−", () => this.zoomBy(0.8)),
        button("Show the whole graph", "⤢", () => this.fit()),
      ),
    );
    this.element.prepend(this.svg);
    this.listen();
    new ResizeObserver(() => (this.fitted ? this.soon() : this.fit())).observe(this.element);
  }

  load(graph: Graph, fresh: boolean): void {
    this.graph = graph;
    this.nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    this.groups = groupsOf(graph);
    this.edgeBoxes = graph.edges.map((edge) => boxOf(edge.points));
    if (!this.active || !this.nodes.has(this.active))
      this.active = graph.nodes.find((node) => !this.groups.has(node.id))?.id;
    if (fresh || !this.fitted) this.fit();
    else this.draw();
  }

  mark(picked: ReadonlySet<string>, linked: ReadonlySet<string>, preview: ReadonlySet<string>): void {
    this.picked = picked;
    this.linked = linked;
    this.preview = preview;
    this.draw();
  }

  isGroup(id: string): boolean {
    return this.groups.has(id);
  }

  /** Moves the view only if the node is out of it. */
  reveal(id: string): void {
    const node = this.nodes.get(id) ?? this.groups.get(id);
    if (!node) return;
    if (this.nodes.has(id)) this.active = id;
    const { clientWidth: width, clientHeight: height } = this.element;
    const { x, y, zoom } = this.view;
    const [left, top] = [node.x * zoom + x, node.y * zoom + y];
    const inView = left >= 0 && top >= 0 && left + node.width * zoom <= width && top + node.height * zoom <= height;
    if (!inView) {
      this.view.x = width / 2 - (node.x + node.width / 2) * zoom;
      this.view.y = height / 2 - (node.y + node.height / 2) * zoom;
    }
    this.draw();
  }

  /** The whole graph; one too large to be read like that is shown from its first node on. */
  fit(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    const first = this.graph.nodes.find((node) => !this.groups.has(node.id));
    if (!width || !height || !first) return;
    const whole = Math.min(1.25, (width - 2 * PADDING) / this.graph.width, (height - 2 * PADDING) / this.graph.height);
    const zoom = whole >= LABELS_FROM ? whole : READABLE;
    const centre =
      whole >= LABELS_FROM || this.graph.width * zoom <= width ? this.graph.width / 2 : first.x + first.width / 2;
    this.view = {
      zoom,
      x: width / 2 - centre * zoom,
      y: Math.max(PADDING, (height - this.graph.height * zoom) / 2),
    };
    this.fitted = true;
    this.draw();
  }

  private zoomBy(factor: number, at = { x: this.element.clientWidth / 2, y: this.element.clientHeight / 2 }): void {
    const zoom = Math.min(4, Math.max(0.02, this.view.zoom * factor));
    const scale = zoom / this.view.zoom;
    this.view = { zoom, x: at.x - (at.x - this.view.x) * scale, y: at.y - (at.y - this.view.y) * scale };
    this.soon();
  }

  private soon(): void {
    this.awaited ||= requestAnimationFrame(() => {
      this.awaited = 0;
      this.move();
    });
  }

  /** Draws everything in view anew, after something about it has changed. */
  private draw(): void {
    for (const layer of this.layers) layer.replaceChildren();
    this.drawn.clear();
    this.move();
    if (this.active) this.svg.setAttribute("aria-activedescendant", this.domId(this.active));
  }

  /** After the view has moved: what stays in view stays as it is, the rest comes or goes. */
  private move(): void {
    const { x, y, zoom } = this.view;
    const detail = Number(zoom >= LABELS_FROM) + Number(zoom >= EDGE_LABELS_FROM);
    if (detail !== this.detail) {
      this.detail = detail;
      this.draw();
      return;
    }
    const seen = {
      left: -x / zoom,
      top: -y / zoom,
      right: (this.element.clientWidth - x) / zoom,
      bottom: (this.element.clientHeight - y) / zoom,
    };
    const show = <T>(layer: number, item: T, box: Box, draw: (item: T) => SVGElement) => {
      const inView =
        box.x <= seen.right && box.y <= seen.bottom && box.x + box.width >= seen.left && box.y + box.height >= seen.top;
      const there = this.drawn.get(item);
      if (inView && !there) {
        const element = draw(item);
        this.drawn.set(item, element);
        this.layers[layer]!.append(element);
      } else if (!inView && there) {
        there.remove();
        this.drawn.delete(item);
      }
    };
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${zoom})`);
    for (const group of this.groups.values()) show(0, group, group, () => this.drawGroup(group));
    for (const [index, edge] of this.graph.edges.entries()) {
      show(1, edge, this.edgeBoxes[index]!, () => this.drawEdge(edge, index));
    }
    for (const node of this.graph.nodes) if (!this.groups.has(node.id)) show(2, node, node, () => this.drawNode(node));
  }

  private drawGroup(group: Group): SVGElement {
    const paint = this.paint(group.id);
    return s(
      "g",
      { class: `group ${this.marksOf(group.id)}`, "data-id": group.id, "aria-hidden": "true" },
      s("rect", { x: group.x, y: group.y, width: group.width, height: group.height, rx: 8 }),
      this.detail > 0 &&
        s(
          "text",
          { x: group.x + 8, y: group.y + 13 },
          shorten([this.groupTitle(group.id), paint.value].filter(Boolean).join(" · "), group.width - 16, 6.2),
        ),
    );
  }

  private drawEdge(edge: GraphEdge, index: number): SVGElement {
    const d = pathOf(edge.points);
    const live = this.linked.has(edge.source) && this.linked.has(edge.target);
    const middle = middleOf(edge.points);
    return s(
      "g",
      {
        class: `edge ${edge.fused ? "fused" : "through-memory"} ${live ? "linked" : ""}`,
        "data-edge": index,
        "aria-hidden": "true",
      },
      s("path", { class: "line", d, "marker-end": `url(#${this.prefix}-arrow)` }),
      s("path", { class: "reach", d }),
      this.detail > 1 && edge.label !== "" && s("text", { x: middle.x + 5, y: middle.y + 3 }, edge.label),
    );
  }

  private drawNode(node: GraphNode): SVGElement {
    const paint = this.paint(node.id);
    const fill = paint.kind === "unknown" ? `url(#${this.prefix}-unknown)` : paint.fill;
    const middle = node.y + node.height / 2;
    const detail = paint.value || node.detail;
    return s(
      "g",
      {
        id: this.domId(node.id),
        class: `node ${paint.kind} ${paint.ink ? `ink-${paint.ink}` : ""} ${this.marksOf(node.id)} ${node.id === this.active ? "active" : ""}`,
        role: "option",
        "aria-label": [node.title, detail].filter(Boolean).join(" "),
        "aria-selected": String(this.linked.has(node.id)),
        "data-id": node.id,
      },
      s("rect", { x: node.x, y: node.y, width: node.width, height: node.height, rx: 5, ...(fill ? { fill } : {}) }),
      this.detail > 0 &&
        s(
          "text",
          { class: "title", x: node.x + node.width / 2, y: detail ? middle - 3 : middle + 4 },
          shorten(node.title, node.width - 12, 7.2),
        ),
      " ", // so that the two texts are two words to a screen reader
      this.detail > 0 &&
        detail !== "" &&
        s("text", { class: "detail", x: node.x + node.width / 2, y: middle + 11 }, shorten(detail, node.width - 10, 6)),
    );
  }

  private marksOf(id: string): string {
    const marks: string[] = [];
    if (this.linked.has(id)) marks.push("linked");
    if (this.picked.has(id)) marks.push("picked");
    if (this.preview.has(id)) marks.push("preview");
    return marks.join(" ");
  }

  private domId(id: string): string {
    return `${this.prefix}-${id.replace(/[^\w-]/g, "_")}`;
  }

  private listen(): void {
    const { svg } = this;
    let drag: { x: number; y: number; moved: boolean } | undefined;
    svg.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.shiftKey) this.view.x -= event.deltaY;
        else {
          const box = svg.getBoundingClientRect();
          this.zoomBy(Math.exp(-event.deltaY / 500), { x: event.clientX - box.x, y: event.clientY - box.y });
        }
        this.soon();
      },
      { passive: false },
    );
    svg.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    svg.addEventListener("pointermove", (event) => {
      if (!drag || !(event.buttons & 1)) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) svg.setPointerCapture(event.pointerId);
      this.view.x += dx;
      this.view.y += dy;
      drag = { x: event.clientX, y: event.clientY, moved: true };
      this.soon();
    });
    svg.addEventListener("click", (event) => {
      const moved = drag?.moved;
      drag = undefined;
      const id = idAt(event);
      if (moved || !id || event.detail > 1) return;
      if (this.nodes.has(id)) this.active = id;
      this.events.pick(id);
    });
    svg.addEventListener("dblclick", (event) => {
      const id = idAt(event);
      if (id) this.events.open(id);
    });
    svg.addEventListener("mouseover", (event) => this.pointAt(event.target as Element));
    svg.addEventListener("mouseleave", () => this.events.point(undefined, undefined));
    svg.addEventListener("focus", () => this.pointAtActive());
    svg.addEventListener("blur", () => this.events.point(undefined, undefined));
    svg.addEventListener("keydown", (event) => this.onKey(event));
  }

  private pointAt(target: Element): void {
    const edge = target.closest<SVGElement>("[data-edge]");
    const id = target.closest<SVGElement>("[data-id]")?.dataset.id;
    const node = id === undefined ? undefined : this.nodes.get(id);
    const where = (target.closest<SVGElement>("[data-id]") ?? target).getBoundingClientRect();
    if (edge) this.events.point({ edge: this.graph.edges[Number(edge.dataset.edge)]! }, where);
    else if (node && !this.groups.has(node.id)) this.events.point({ node }, where);
    else if (id !== undefined) this.events.point({ group: id }, undefined);
    else this.events.point(undefined, undefined);
  }

  private pointAtActive(): void {
    const node = this.active ? this.nodes.get(this.active) : undefined;
    if (!node) return;
    const drawn = this.world.querySelector(`#${CSS.escape(this.domId(node.id))}`);
    this.events.point({ node }, drawn?.getBoundingClientRect());
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (arrow) {
      const next = nearest(
        [...this.nodes.values()].filter((node) => !this.groups.has(node.id)),
        this.nodes.get(this.active ?? ""),
        arrow[0]!,
        arrow[1]!,
      );
      if (next) {
        this.reveal(next.id);
        this.pointAtActive();
      }
    } else if (event.key === "Enter" && this.active) this.events.pick(this.active);
    else if (event.key === " " && this.active) this.events.open(this.active);
    else if (event.key === "+") this.zoomBy(1.25);
    else if (event.key === "-") this.zoomBy(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}

const idAt = (event: Event): string | undefined =>
  (event.target as Element).closest<SVGElement>("[data-id]")?.dataset.id;

/** The frames drawn behind nodes of one kernel or composite. A node that is itself the group lends its own frame. */
export function groupsOf(graph: Graph): Map<string, Group> {
  const boxes = new Map<string, { left: number; top: number; right: number; bottom: number }>();
  for (const node of graph.nodes) {
    if (!node.group || node.group === node.id) continue;
    const box = boxes.get(node.group) ?? { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    boxes.set(node.group, {
      left: Math.min(box.left, node.x),
      top: Math.min(box.top, node.y),
      right: Math.max(box.right, node.x + node.width),
      bottom: Math.max(box.bottom, node.y + node.height),
    });
  }
  const own = new Map(graph.nodes.map((node) => [node.id, node]));
  const groups = new Map<string, Group>();
  for (const [id, { left, top, right, bottom }] of boxes) {
    const frame = own.get(id);
    groups.set(
      id,
      frame ?? {
        id,
        x: left - PADDING,
        y: top - PADDING - TITLE,
        width: right - left + 2 * PADDING,
        height: bottom - top + 2 * PADDING + TITLE,
      },
    );
  }
  return groups;
}

/** The node next to another one in a direction: straight distance counts once, sideways distance twice. */
export function nearest(
  nodes: readonly GraphNode[],
  from: GraphNode | undefined,
  dx: number,
  dy: number,
): GraphNode | undefined {
  if (!from) return nodes[0];
  let best: GraphNode | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const node of nodes) {
    const x = node.x + node.width / 2 - (from.x + from.width / 2);
    const y = node.y + node.height / 2 - (from.y + from.height / 2);
    const ahead = x * dx + y * dy;
    if (node === from || ahead <= 0) continue;
    const cost = ahead + 2 * Math.abs(x * dy - y * dx);
    if (cost < least) [best, least] = [node, cost];
  }
  return best;
}

function boxOf(points: readonly number[]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i + 1 < points.length; i += 2) {
    left = Math.min(left, points[i]!);
    right = Math.max(right, points[i]!);
    top = Math.min(top, points[i + 1]!);
    bottom = Math.max(bottom, points[i + 1]!);
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** A soft line through the points: straight between the middles of its pieces, bent around the corners. */
export function pathOf(points: readonly number[]): string {
  if (points.length < 4) return "";
  const at = (i: number) => `${points[2 * i]} ${points[2 * i + 1]}`;
  const count = points.length / 2;
  if (count === 2) {
    const bend = (points[3]! - points[1]!) / 2;
    return `M${at(0)}C${points[0]} ${points[1]! + bend} ${points[2]} ${points[3]! - bend} ${at(1)}`;
  }
  let d = `M${at(0)}`;
  for (let i = 1; i < count - 1; i++) {
    const [x, y] = [points[2 * i]!, points[2 * i + 1]!];
    const last = i === count - 2;
    const [nextX, nextY] = [points[2 * i + 2]!, points[2 * i + 3]!];
    d += `Q${x} ${y} ${last ? nextX : (x + nextX) / 2} ${last ? nextY : (y + nextY) / 2}`;
  }
  return d;
}

function middleOf(points: readonly number[]): { x: number; y: number } {
  const count = points.length / 2;
  const i = Math.floor((count - 1) / 2);
  const j = Math.ceil((count - 1) / 2);
  return { x: (points[2 * i]! + points[2 * j]!) / 2, y: (points[2 * i + 1]! + points[2 * j + 1]!) / 2 };
}

/** The text, cut so that it fits: SVG text does not do that by itself. */
function shorten(text: string, width: number, characterWidth: number): string {
  const most = Math.max(1, Math.floor(width / characterWidth));
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}
