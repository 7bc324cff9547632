// The built bundle in a real browser, with the fixture as its host: what a person sees, clicks and types.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.stop());

/** Opens a panel, runs the test, and sees that nothing was blocked and no script failed. */
async function panel(query, body, size) {
  const { page, violations } = await browser.open(query, size);
  try {
    await body(page);
    assert.deepEqual(violations, []);
  } finally {
    await page.close();
  }
}

const column = (page, id) => page.locator(`.column[data-column="${id}"]`);
const row = (page, id) => page.locator(`.row[data-id="${id}"]`);
const linked = (page, id) =>
  column(page, id)
    .locator(".row.linked")
    .evaluateAll((rows) => rows.map((at) => at.dataset.id).sort());
const revealed = (page) =>
  page.evaluate(() => window.host.revealed.map(({ range }) => [range.start.line, range.start.column]));
const showAll = async (page) => {
  const closed = page.locator('.toggles button[aria-pressed="false"]');
  while (await closed.count()) await closed.first().click();
};

test("a click lights up every column within the depth, and the editor goes there", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await showAll(page);
    assert.equal(await page.locator(".column").count(), 7);
    await row(page, "ir:%3").click();
    assert.deepEqual(await linked(page, "source"), ["source:44"]);
    assert.deepEqual(await linked(page, "cst"), ["cst:4"]);
    assert.deepEqual(await linked(page, "kernel"), ["kernel:k0"]);
    assert.deepEqual(await linked(page, "loop"), ["loop:k0.0", "loop:k0.5", "loop:k0.6", "loop:k0.7"]);
    assert.deepEqual(await linked(page, "llvm"), ["llvm:0", "llvm:5", "llvm:6", "llvm:7"]);
    assert.deepEqual(await linked(page, "asm"), []);
    assert.deepEqual(await revealed(page), [[44, 15]]);
    assert.equal(await column(page, "llvm").locator(".count").innerText(), "4 of 10");
    assert.ok((await column(page, "llvm").locator(".ruler .mark.linked").count()) >= 2);

    // One layer more reaches the assembly.
    await page.getByRole("button", { name: "Highlight one layer more" }).click();
    assert.deepEqual(await linked(page, "asm"), ["asm:4", "asm:5", "asm:6"]);
    await page.keyboard.press("Escape");
    assert.deepEqual(await linked(page, "llvm"), []);
  }));

test("the editor's cursor selects the expression under it", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await page.evaluate(() => window.host.moveCursor(window.softmax.PATH, { line: 44, column: 36 }));
    assert.deepEqual(await linked(page, "ir"), ["ir:%1"]);
    assert.deepEqual(await revealed(page), []); // the editor is not sent where it already is
    await page.evaluate(() => window.host.moveCursor(window.softmax.PATH, { line: 45, column: 23 }));
    assert.deepEqual(await linked(page, "ir"), ["ir:%4"]);
  }));

test("a name shows its scopes and bindings", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await row(page, "source:45")
      .locator(".text")
      .click({ position: { x: 100, y: 9 } }); // on "weights"
    const card = page.locator(".side-card");
    await card.waitFor();
    assert.equal(await card.locator("header code").innerText(), "weights");
    assert.deepEqual(await card.locator(".chain li").allInnerTexts(), ["stable_softmax", "module", "builtins"]);
    assert.match(await card.locator(".bindings").innerText(), /assignment.*in stable_softmax/);
    await card.getByRole("button", { name: "line 44" }).click();
    assert.deepEqual((await revealed(page)).at(-1), [44, 5]);
    await page.keyboard.press("Escape");
    assert.equal(await card.isVisible(), false);
  }));

test("a double click opens a composite, and closes it again", () =>
  panel({ panel: "drilldown" }, async (page) => {
    assert.equal(await row(page, "ir:%5.0").count(), 0);
    await row(page, "ir:%5").locator(".text").dblclick();
    await row(page, "ir:%5.0").waitFor();
    assert.equal(await row(page, "ir:%5").getAttribute("aria-expanded"), "true");
    await row(page, "ir:%5").locator(".text").dblclick();
    await row(page, "ir:%5.0").waitFor({ state: "detached" });
  }));

test("the edge of a column can be dragged, and given back", () =>
  panel({ panel: "drilldown" }, async (page) => {
    const width = () => column(page, "source").evaluate((at) => Math.round(at.getBoundingClientRect().width));
    const before = await width();
    const edge = column(page, "source").locator(".splitter");
    const { x, y } = await edge.boundingBox();
    await page.mouse.move(x + 3, y + 50);
    await page.mouse.down();
    await page.mouse.move(x + 83, y + 50);
    await page.mouse.up();
    assert.ok(Math.abs((await width()) - before - 80) <= 2);
    await edge.dblclick();
    assert.equal(await width(), before);
  }));

test("unmapped lines say why, and coverage says how many", () =>
  panel({ panel: "drilldown" }, async (page) => {
    const asm = column(page, "asm");
    assert.equal(await asm.locator(".coverage").innerText(), "70 % mapped");
    assert.equal(await row(page, "asm:0").locator(".note").innerText(), "function prologue");
    await asm.getByRole("button", { name: "3 unmapped" }).click();
    assert.equal(await asm.locator(".row.active").getAttribute("data-id"), "asm:1");
    await row(page, "asm:1").click();
    assert.match(await page.locator(".crumbs").innerText(), /no origin: function prologue/);
  }));

test("everything with the keyboard alone", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await page.getByRole("tree", { name: "Tensor IR" }).focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    assert.deepEqual(await revealed(page), []);
    await page.keyboard.press("Enter");
    assert.deepEqual(await linked(page, "source"), ["source:44"]);
    assert.deepEqual(await revealed(page), [[44, 15]]);
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowRight"); // opens the composite
    await row(page, "ir:%5.1").waitFor();
    await page.keyboard.press("ArrowLeft");
    await row(page, "ir:%5.1").waitFor({ state: "detached" });

    // Tab goes on to the next column, "n" to the next linked row in it.
    const at = () => page.evaluate(() => document.activeElement.closest(".column")?.dataset.column);
    for (let i = 0; i < 8 && (await at()) === "ir"; i++) await page.keyboard.press("Tab");
    assert.notEqual(await at(), "ir");

    await page.keyboard.press("6"); // LLVM
    await column(page, "llvm").waitFor();
    await page.getByRole("tree", { name: "Loops" }).focus();
    await page.keyboard.press("n");
    assert.match(await column(page, "loop").locator(".row.active").getAttribute("class"), /linked/);

    await page.keyboard.press("/");
    await page.keyboard.type("vmulps");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".found").innerText(), "1 of 1");
    assert.match(await row(page, "asm:8").getAttribute("class"), /match/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".row.match").count(), 0);
    await page.getByRole("tree", { name: "Loops" }).focus();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and mouse" }).waitFor();
  }));

test("the tensor IR as a graph: arrows walk, Enter selects", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await page.getByRole("tree", { name: "Tensor IR" }).focus();
    await page.keyboard.press("g");
    const graph = page.getByRole("listbox", { name: "Tensor IR as a graph" });
    assert.equal(await graph.locator(".node").count(), 7);
    await graph.focus();
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    assert.equal(await graph.locator(".node.picked").getAttribute("data-id"), "ir:%3");
    assert.deepEqual(await linked(page, "source"), ["source:44"]);
    assert.equal(await graph.locator(".edge.through-memory").count(), 3);
  }));

test("a newer version keeps the selection; a stale one says so", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await row(page, "ir:%3").click();
    await page.evaluate(() => window.host.change([{ ...window.softmax.drilldown, version: "2", stale: true }]));
    await page.getByText("The newest text cannot be shown yet").waitFor();
    assert.deepEqual(await linked(page, "source"), ["source:44"]);
    await page.evaluate(() => window.host.change([{ ...window.softmax.drilldown, version: "3" }]));
    await page.getByText("The newest text cannot be shown yet").waitFor({ state: "hidden" });
  }));

test("trouble is a sentence above what is already there", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await page.getByLabel("Function", { exact: true }).selectOption("mlp");
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByRole("alert").innerText(), "The fixture has no drilldown of mlp.");
    assert.equal(await row(page, "ir:%3").count(), 1);
  }));

test("what was arranged is handed to the host", () =>
  panel({ panel: "drilldown" }, async (page) => {
    await page.locator('.toggles button[data-column="kernel"]').click();
    const saved = await page.evaluate(() => window.host.saved.get("drilldown"));
    assert.ok(saved.columns.includes("kernel"));
    await page.evaluate(() => window.host.set({ highlightDepth: 1 }));
    assert.equal(await page.locator(".depth").innerText(), "depth 1");
  }));

test("a hundred thousand instructions: only the rows in view are in the page", () =>
  panel({ panel: "drilldown", large: "100000" }, async (page) => {
    assert.ok((await page.locator(".row").count()) < 400);
    await column(page, "asm")
      .locator(".list")
      .evaluate((list) => {
        list.scrollTop = list.scrollHeight;
      });
    await row(page, "asm:99999").waitFor();
    await row(page, "asm:99999").click();
    await page.keyboard.press("]");
    await page.keyboard.press("]");
    await page.keyboard.press("]");
    assert.deepEqual(await linked(page, "source"), ["source:4992"]); // scrolled to: it was far out of view
    await page.getByRole("listbox", { name: "Assembly" }).focus();
    await page.keyboard.press("g");
    assert.ok((await page.locator(".node").count()) < 800);
  }));

test("the heatmap: nodes and lines carry their number, zero and unknown are told apart", () =>
  panel({ panel: "heatmap" }, async (page) => {
    const node = (id) => page.locator(`.node[data-id="${id}"]`);
    assert.match(await node("ir:%3").getAttribute("aria-label"), /3\.5 FLOP\/B/);
    assert.match(await node("ir:%5").getAttribute("class"), /unknown/);
    assert.match(await node("ir:%0").getAttribute("class"), /zero/);
    assert.match(await node("ir:return").getAttribute("class"), /plain/);
    assert.match(await node("ir:%2").locator("rect").getAttribute("fill"), /^rgb/);
    assert.deepEqual(await page.locator(".chip.value").allInnerTexts(), ["1.9 FLOP/B"]);
    assert.match(
      await page.locator(".legend").getAttribute("aria-label"),
      /0\.125 to 3\.5 FLOP\/B, the ridge point of x86-64.* is 2\.2, static/,
    );

    await node("ir:%3").hover();
    const card = page.locator(".heat-card");
    await card.waitFor();
    assert.match(await card.innerText(), /3\.5 FLOP\/B/);
    assert.match(await card.innerText(), /from sub: elementwise after elementwise/);

    await page.getByRole("button", { name: "Bytes" }).click();
    assert.match(await node("ir:%3").getAttribute("aria-label"), /524 kB/);
  }));

test("the heatmap follows the cursor, and sends the editor where a node came from", () =>
  panel({ panel: "heatmap" }, async (page) => {
    await page.evaluate(() => window.host.moveCursor(window.softmax.PATH, { line: 45, column: 1 }));
    assert.deepEqual(await page.locator(".node.linked").evaluateAll((nodes) => nodes.map((at) => at.dataset.id)), [
      "ir:%4",
      "ir:%5",
    ]);
    await page.locator('.node[data-id="ir:%1"]').click();
    assert.deepEqual(await revealed(page), [[44, 34]]);
    assert.equal(await page.locator(".heat-lines .row.linked").getAttribute("data-index"), "2");
  }));

test("the heatmap of another function, with fewer lines", () =>
  panel({ panel: "heatmap" }, async (page) => {
    await page.locator(".heat-lines .row").nth(3).click();
    await page.evaluate(() => {
      const { heatmap } = window.softmax;
      window.host.change([{ ...heatmap, function: "short", source: heatmap.source.slice(0, 1) }]);
      window.host.show({ panel: "heatmap", path: heatmap.path, position: null, function: "short" });
    });
    await page.locator(".heat-lines .row").nth(1).waitFor({ state: "detached" });
    assert.equal(await page.locator(".heat-lines .row").count(), 1);
  }));

test("the heatmap as a table says the same, and why values were not fused", () =>
  panel({ panel: "heatmap" }, async (page) => {
    await page.getByRole("button", { name: "Table" }).click();
    const table = page.getByRole("table", { name: "Operations of stable_softmax" });
    const cells = (row) => row.locator("th, td").allInnerTexts();
    assert.deepEqual(await cells(table.getByRole("row", { name: /^exp/ })), [
      "exp",
      "kernel:k0",
      "44",
      "3.5 FLOP/B",
      "524 kB",
    ]);
    const values = page.getByRole("table", { name: "Values between operations" });
    assert.deepEqual(await cells(values.locator("tbody tr").first()), [
      "scores",
      "reduce_max",
      "f32[rows, columns]",
      "through memory",
      "an input is read from memory",
    ]);
    await table.getByRole("button", { name: "reduce_sum" }).click();
    assert.deepEqual(await revealed(page), [[45, 22]]);
  }));

for (const theme of ["light", "dark", "high-contrast"]) {
  for (const name of ["drilldown", "heatmap"]) {
    test(`${name}, ${theme}: nothing that axe finds wrong`, () =>
      panel({ panel: name, theme }, async (page) => {
        if (name === "drilldown") await row(page, "ir:%3").click();
        // The policy forbids foreign scripts in the page; the debugger's own world is not bound by it.
        const source = await import("node:fs/promises").then((fs) => fs.readFile(axe, "utf8"));
        await page.evaluate(source);
        const { violations } = await page.evaluate(() =>
          window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }),
        );
        assert.deepEqual(
          violations.map(
            ({ id, nodes }) =>
              `${id}: ${nodes.map((at) => `${at.html.slice(0, 160)} ${at.failureSummary}`).join("\n")}`,
          ),
          [],
        );
      }));
  }
}
