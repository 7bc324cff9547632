// The card beside the columns: what a name means. Its scopes from the inside out, and in each of them what it is bound to.
import { button, h } from "./element.ts";
import type { Place, Scope } from "./protocol.ts";

export class SideCard {
  readonly element = h("aside", {
    class: "side-card",
    hidden: true,
    "aria-live": "polite",
    "aria-label": "Scopes and bindings",
  });

  constructor(private readonly reveal: (place: Place) => void) {}

  show(scope: Scope): void {
    const close = button("Close", "×", () => this.hide(), { class: "close" });
    this.element.replaceChildren(
      h("header", {}, h("code", {}, scope.symbol), close),
      h(
        "ol",
        { class: "chain", "aria-label": "Scope chain, innermost first" },
        ...scope.chain.map((name) => h("li", {}, name)),
      ),
      scope.bindings.length
        ? h(
            "ul",
            { class: "bindings" },
            ...scope.bindings.map((binding) => {
              const { place } = binding;
              return h(
                "li",
                {},
                h("span", { class: "kind" }, binding.kind),
                h("span", { class: "scope" }, ` in ${binding.scope}`),
                place &&
                  button(
                    `Go to line ${place.range.start.line}`,
                    `line ${place.range.start.line}`,
                    () => this.reveal(place),
                    { class: "link" },
                  ),
                binding.type !== "" && h("code", { class: "type" }, binding.type),
              );
            }),
          )
        : h("p", { class: "none" }, "No binding is known: the name comes from outside what was read."),
    );
    this.element.hidden = false;
  }

  hide(): boolean {
    const was = !this.element.hidden;
    this.element.hidden = true;
    return was;
  }
}
