// The right edge of a column, to drag: the column gets the width it is dragged to, a double click gives the width back. It is for
// the mouse alone; with the keyboard, hiding columns makes room.
import { h } from "./element.ts";

const NARROWEST = 120;

export function splitter(column: HTMLElement): HTMLElement {
  const edge = h("div", { class: "splitter", "aria-hidden": "true" });
  edge.addEventListener("pointerdown", (event) => {
    edge.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  edge.addEventListener("pointermove", (event) => {
    if (!edge.hasPointerCapture(event.pointerId)) return;
    const width = Math.max(NARROWEST, event.clientX - column.getBoundingClientRect().left);
    column.style.flex = `0 0 ${width}px`;
  });
  edge.addEventListener("dblclick", () => {
    column.style.flex = "";
  });
  return edge;
}
