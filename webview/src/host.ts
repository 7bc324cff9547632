// What a panel needs from whoever shows it. VS Code, the studio's server, an offline report and the tests each implement
// this and nothing else, so a panel runs unchanged in all four. Panels never learn which one they are in.
import type { DrilldownPayload, HeatmapPayload, PanelInfo, Place, Position, ViewRequest } from "./protocol.ts";

export type Payload = DrilldownPayload | HeatmapPayload;

export interface Host {
  /** What a panel shows first: what the page was opened for, later what was shown last. Read when a panel is mounted. */
  readonly request: ViewRequest;

  /** Whether an editor stands beside the panel: then the source need not be among the columns shown at first. */
  readonly hasEditor: boolean;

  /** The panels that can be reached from this page. Read once; with fewer than two, no tabs are drawn. */
  readonly panels: readonly PanelInfo[];

  /** The files whose functions a person can switch to from the page; empty where an editor is there for that. */
  files(): Promise<readonly string[]>;

  /**
   * Called when a panel is mounted, when a person picks another function, and after `onChanged` fired. Rejects with an
   * Error whose message is a sentence for people; the panel then keeps what it has and shows that sentence.
   */
  view(request: ViewRequest): Promise<Payload>;

  /** Called when a person clicks an element that has a place, or presses Enter on it. Walking with the arrows never calls it. */
  reveal(place: Place): void;

  /** Fires after the cursor came to rest in an editor of the same window. Hosts without an editor never fire it. */
  onCursor(listener: (path: string, position: Position) => void): void;

  /** Fires when what a view is made from has changed, after it can be asked for again. An empty path means any file. */
  onChanged(listener: (path: string) => void): void;

  /** Fires when something outside the panel asks it for another function, a command for example. */
  onShow(listener: (request: ViewRequest) => void): void;

  /** Fires once after mounting where settings exist, and each time one of them changes. */
  onSettings(listener: (settings: Settings) => void): void;

  /** What `save` was last given by this panel, in this or an earlier life of the page; undefined the first time. */
  restore(panel: string): unknown;

  /** Called after each change of what a person arranged (columns, metric), never with data of the workspace. */
  save(panel: string, arranged: unknown): void;
}

export interface Settings {
  readonly highlightDepth: number;
}
