// What a panel in VS Code and the extension say to each other. The extension compiles against this very file.
import type { Payload, Settings } from "./host.ts";
import type { Place, Position, ViewRequest } from "./protocol.ts";

/** What a panel says to the extension. */
export type ToExtension =
  | { readonly type: "ready" }
  | { readonly type: "view"; readonly id: number; readonly request: ViewRequest }
  | { readonly type: "reveal"; readonly place: Place };

/** What the extension says to a panel. `request` is kept as state, so that a reloaded window can restore the panel. */
export type ToPanel =
  | { readonly type: "start"; readonly request: ViewRequest }
  | { readonly type: "answer"; readonly id: number; readonly payload?: Payload; readonly problem?: string }
  | { readonly type: "cursor"; readonly path: string; readonly position: Position }
  | { readonly type: "changed"; readonly path: string }
  | { readonly type: "show"; readonly request: ViewRequest }
  | { readonly type: "settings"; readonly settings: Settings };
