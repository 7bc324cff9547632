// The selection broker: columns tell it what was picked, it translates that to every column and tells all of them.
// A column never talks to another one. There are two selections: the one picked, and the preview under the mouse.
import type { Lineage } from "./lineage.ts";

export interface Selection {
  readonly ids: readonly string[];
  /** Linked elements by column id; those of `ids` are among them. */
  readonly linked: ReadonlyMap<string, ReadonlySet<string>>;
  /** Who picked: a column id, "editor" or "panel". The others scroll to it if they must; the one that picked does not. */
  readonly from: string;
}

const NOTHING: Selection = { ids: [], linked: new Map(), from: "panel" };

export class SelectionBroker {
  picked = NOTHING;
  preview = NOTHING;
  private lineage: Lineage | undefined;
  private readonly listeners: ((kind: "picked" | "preview") => void)[] = [];

  constructor(private depth: number) {}

  /** A new payload: what was picked stays picked where its elements still exist. */
  load(lineage: Lineage): void {
    this.lineage = lineage;
    this.preview = NOTHING;
    const kept = this.picked.ids.filter((id) => lineage.element(id));
    this.pick(kept, "panel");
  }

  pick(ids: readonly string[], from: string): void {
    this.picked = this.translate(ids, from);
    this.tell("picked");
  }

  /** What lies under the mouse; an empty list when nothing does. */
  hover(ids: readonly string[], from: string): void {
    if (same(ids, this.preview.ids)) return;
    this.preview = this.translate(ids, from);
    this.tell("preview");
  }

  setDepth(depth: number): void {
    this.depth = depth;
    this.picked = this.translate(this.picked.ids, "panel");
    this.tell("picked");
  }

  onChange(listener: (kind: "picked" | "preview") => void): void {
    this.listeners.push(listener);
  }

  private translate(ids: readonly string[], from: string): Selection {
    if (!ids.length || !this.lineage) return NOTHING;
    return { ids, linked: this.lineage.trace(ids, this.depth), from };
  }

  private tell(kind: "picked" | "preview"): void {
    for (const listener of this.listeners) listener(kind);
  }
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}
