// Tabs over the panel where a page holds several: the studio and a report. VS Code has tabs of its own, so there are none.
import { h } from "./element.ts";
import type { Host } from "./host.ts";
import { Visit } from "./visit.ts";

type Mount = (root: HTMLElement, host: Host) => void;

/** Mounts the chosen panel in the root, under tabs for the others if there are others. */
export function mountWithTabs(
  root: HTMLElement,
  host: Host,
  chosen: string,
  panels: Readonly<Record<string, Mount>>,
): void {
  const known = host.panels.filter(({ id }) => panels[id]);
  if (known.length < 2) {
    panels[chosen]!(root, host);
    return;
  }
  const place = h("div", { class: "panel", role: "tabpanel" });
  let visit: Visit | undefined;
  const choose = (id: string) => {
    for (const tab of list.querySelectorAll<HTMLElement>("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab.dataset.panel === id));
      tab.tabIndex = tab.dataset.panel === id ? 0 : -1;
    }
    visit?.end();
    visit = new Visit(host, id);
    const next = h("div", {});
    place.replaceChildren(next);
    place.setAttribute("aria-label", known.find((at) => at.id === id)?.title ?? id);
    panels[id]!(next, visit);
  };
  const list = h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "Panels" },
    h("span", { class: "brand", "aria-hidden": "true" }, "Cuvil"),
  );
  for (const { id, title, question } of known) {
    const tab = h("button", { type: "button", role: "tab", "data-panel": id, title: question }, title);
    tab.addEventListener("click", () => choose(id));
    list.append(tab);
  }
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.querySelectorAll<HTMLElement>("[role=tab]")];
    const at = tabs.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || at < 0) return;
    const next = tabs[(at + step + tabs.length) % tabs.length]!;
    next.focus();
    next.click();
  });
  root.replaceChildren(list, place);
  choose(chosen);
}
