// For tests: payloads handed over as values, and everything the panel asked for written down.
import type { Host, Payload, Settings } from "../host.ts";
import type { PanelInfo, Place, Position, ViewRequest } from "../protocol.ts";

export class FixtureHost implements Host {
  readonly hasEditor = false;
  readonly revealed: Place[] = [];
  readonly asked: ViewRequest[] = [];
  readonly saved = new Map<string, unknown>();
  private readonly cursors: ((path: string, position: Position) => void)[] = [];
  private readonly changes: ((path: string) => void)[] = [];
  private readonly shows: ((request: ViewRequest) => void)[] = [];
  private readonly settings: ((settings: Settings) => void)[] = [];

  constructor(
    readonly request: ViewRequest,
    private payloads: readonly Payload[],
    readonly panels: readonly PanelInfo[] = [],
  ) {}

  async files(): Promise<readonly string[]> {
    return [];
  }

  async view(request: ViewRequest): Promise<Payload> {
    this.asked.push(request);
    const found = this.payloads.find(
      (payload) =>
        payload.panel === request.panel && (request.function === "" || payload.function === request.function),
    );
    if (!found) throw new Error(`The fixture has no ${request.panel} of ${request.function || "anything"}.`);
    return found;
  }

  reveal(place: Place): void {
    this.revealed.push(place);
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

  restore(panel: string): unknown {
    return this.saved.get(panel);
  }

  save(panel: string, arranged: unknown): void {
    this.saved.set(panel, arranged);
  }

  // What a test does in place of the world outside.
  moveCursor(path: string, position: Position): void {
    for (const listener of this.cursors) listener(path, position);
  }

  change(payloads: readonly Payload[]): void {
    this.payloads = payloads;
    for (const listener of this.changes) listener("");
  }

  show(request: ViewRequest): void {
    for (const listener of this.shows) listener(request);
  }

  set(settings: Settings): void {
    for (const listener of this.settings) listener(settings);
  }
}
