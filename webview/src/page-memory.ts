// What a person arranged, kept by the browser for as long as the tab lives. A browser may refuse storage, to a file for
// example; then the arrangement lasts as long as the page.
export class PageMemory {
  private readonly here = new Map<string, unknown>();

  constructor(private readonly name: string) {}

  restore(panel: string): unknown {
    if (this.here.has(panel)) return this.here.get(panel);
    try {
      return JSON.parse(sessionStorage.getItem(`${this.name}.${panel}`) ?? "null") ?? undefined;
    } catch {
      return undefined;
    }
  }

  save(panel: string, arranged: unknown): void {
    this.here.set(panel, arranged);
    try {
      sessionStorage.setItem(`${this.name}.${panel}`, JSON.stringify(arranged));
    } catch {
      // refused: `here` has it
    }
  }
}
