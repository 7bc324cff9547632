// The card behind "?": keys on the left, what they do on the right.
import { h } from "./element.ts";

export class HelpCard {
  readonly element: HTMLElement;

  constructor(keys: readonly (readonly [string, string])[]) {
    this.element = h(
      "div",
      { class: "help", role: "dialog", "aria-label": "Keys and mouse", hidden: true },
      h("dl", {}, ...keys.flatMap(([key, meaning]) => [h("dt", {}, key), h("dd", {}, meaning)])),
    );
  }

  toggle(): void {
    this.element.hidden = !this.element.hidden;
  }

  hide(): boolean {
    const was = !this.element.hidden;
    this.element.hidden = true;
    return was;
  }
}
