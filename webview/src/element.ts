// Builds DOM: h("p", { class: "note" }, "text") and the same for SVG. Text always becomes text nodes, so nothing of the
// workspace is ever parsed as markup. There is no inline style: places that must be computed go through CSSOM, which a
// strict Content-Security-Policy allows.

type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;
type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child) || child === ""));
  return element;
}

/** A button. `meaning` is its tooltip, and its name where the text is only a sign like "+". */
export function button(
  meaning: string,
  text: string,
  onPress: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const name = /\p{L}/u.test(text) ? {} : { "aria-label": meaning };
  const element = h("button", { type: "button", title: meaning, ...name, ...attributes }, text);
  element.addEventListener("click", onPress);
  return element;
}
