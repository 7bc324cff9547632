// A panel's stay on a page that outlives it. Hosts never forget a listener; a visit that has ended stops passing things on.
import type { Host, Payload, Settings } from "./host.ts";
import type { PanelInfo, Place, Position, ViewRequest } from "./protocol.ts";

export class Visit implements Host {
  private over = false;

  constructor(
    private readonly host: Host,
    private readonly panel: string,
  ) {}

  end(): void {
    this.over = true;
  }

  get request(): ViewRequest {
    return { ...this.host.request, panel: this.panel };
  }

  get hasEditor(): boolean {
    return this.host.hasEditor;
  }

  get panels(): readonly PanelInfo[] {
    return this.host.panels;
  }

  files(): Promise<readonly string[]> {
    return this.host.files();
  }

  view(request: ViewRequest): Promise<Payload> {
    return this.host.view(request);
  }

  reveal(place: Place): void {
    this.host.reveal(place);
  }

  onCursor(listener: (path: string, position: Position) => void): void {
    this.host.onCursor(this.whileHere(listener));
  }

  onChanged(listener: (path: string) => void): void {
    this.host.onChanged(this.whileHere(listener));
  }

  onShow(listener: (request: ViewRequest) => void): void {
    this.host.onShow(this.whileHere(listener));
  }

  onSettings(listener: (settings: Settings) => void): void {
    this.host.onSettings(this.whileHere(listener));
  }

  restore(panel: string): unknown {
    return this.host.restore(panel);
  }

  save(panel: string, arranged: unknown): void {
    this.host.save(panel, arranged);
  }

  private whileHere<A extends readonly unknown[]>(listener: (...told: A) => void): (...told: A) => void {
    return (...told) => {
      if (!this.over) listener(...told);
    };
  }
}
