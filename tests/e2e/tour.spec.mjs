// The tour: what a person does with examples/attention.py on the first evening, in the order they would do it.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startWorkbench, THEMES, until } from "./workbench.mjs";

const FILE = "attention.py";
let bench;
let failed = true; // until the workbench is there
before(async () => {
  bench = await startWorkbench();
  failed = false;
});
after(() => bench?.stop({ failed }));

/** A step of the tour. After one that failed the rest would only wait for what cannot come. */
const step = (name, body) =>
  test(name, async (context) => {
    if (failed) return context.skip("an earlier step failed");
    failed = true;
    await body();
    failed = false;
  });

const linked = (column) =>
  bench
    .panel("drilldown")
    .locator(`.column[data-column="${column}"] .row.linked`)
    .evaluateAll((rows) => rows.map((at) => at.querySelector(".text").textContent.trim()));

step("a finding is underlined and explained", async () => {
  await bench.openFile(FILE);
  await bench.goTo(bench.lineOf(FILE, "return (best - labels)"));
  await until(
    () => bench.editor(FILE).locator(".squiggly-warning").count(),
    (n) => n >= 1,
    60_000,
  );
  await bench.command("Problems: Focus on Problems View");
  const problem = bench.page.locator(".markers-panel .monaco-list-row", { hasText: "broadcasts to [rows, rows]" });
  await problem.waitFor();
  await bench.command("View: Hide Panel");
});

step("a lens says what each function becomes", async () => {
  await bench.goTo(bench.lineOf(FILE, "def stable_softmax"));
  const lenses = bench.editor(FILE).locator(".codelens-decoration a");
  await until(
    () => lenses.allInnerTexts(),
    (texts) => texts.some((text) => /\d+ ops? → 1 kernel · .*FLOP\/B/.test(text)),
    60_000,
  );
  await until(
    () => lenses.allInnerTexts(),
    (texts) => texts.some((text) => text.startsWith("vs HEAD: identical")),
  );
});

step("shapes stand behind names", async () => {
  const hints = bench.editor(FILE).locator('.view-line span[class*="dyn-rule-"]');
  await until(
    () => hints.allInnerTexts(),
    (texts) => texts.join(" ").replaceAll("\u00a0", " ").includes("f32[rows, columns]"),
  );
  const at = bench.lineOf(FILE, "weights = torch.exp");
  assert.ok(
    (await bench.lines(FILE)).some((line) => /weights\W+f32\[rows, columns\]/.test(line)),
    `no hint on line ${at}`,
  );
});

step("a hover tells shape, operation and cost", async () => {
  await bench.goTo(bench.lineOf(FILE, "weights = torch.exp"), 7);
  await bench.command("Show or Focus Hover");
  const hover = bench.page.locator(".monaco-hover:not(.hidden) .hover-contents").first();
  await hover.waitFor();
  assert.match(await bench.page.locator(".monaco-hover:not(.hidden)").innerText(), /f32\[rows, columns\]/);
  await bench.page.keyboard.press("Escape");
});

step("a safe fix is applied from the light bulb", async () => {
  await bench.goTo(bench.lineOf(FILE, "if None == None"), 9);
  await until(
    () => bench.editor(FILE).locator(".squiggly-warning").count(),
    (n) => n >= 1,
  );
  await bench.page.keyboard.press("Control+.");
  await bench.page.locator(".action-widget .monaco-list-row", { hasText: "Replace by True" }).first().click();
  await until(
    () => bench.lines(FILE),
    (lines) => lines.some((line) => line.includes("if True:")),
  );
});

step("a save makes the binaries", async () => {
  await bench.page.keyboard.press("Control+s");
  await until(
    () => bench.read(FILE),
    (text) => text.includes("if True:"),
  );
  const folder = join(bench.workspace, ".cuvil");
  const made = await until(
    () => (existsSync(folder) ? readdirSync(folder, { recursive: true }).map(String) : []),
    (names) => names.some((name) => name.endsWith(".so")),
    120_000,
  );
  assert.ok(
    made.some((name) => name.endsWith(".h")),
    `no header among ${made.join(", ")}`,
  );
  assert.ok(
    made.some((name) => name.endsWith(".json")),
    `no manifest among ${made.join(", ")}`,
  );
});

step("the drilldown: a click moves the editor, the cursor moves the highlight", async () => {
  await bench.goTo(bench.lineOf(FILE, "weights = torch.exp"), 16);
  await bench.command("View: Toggle Primary Side Bar Visibility");
  await bench.command("Cuvil: Open Drilldown");
  const panel = bench.panel("drilldown");
  await panel.locator('.column[data-column="ir"] .row').first().waitFor();

  await panel
    .locator('.column[data-column="ir"] .row', { hasText: "reduce_sum" })
    .locator(".text")
    .click({ position: { x: 20, y: 9 } });
  const selected = "weights.sum(dim=-1, keepdim=True)";
  await bench.editor(FILE).locator(".selected-text").first().waitFor();
  await bench.cursorAt(new RegExp(`^Ln ${bench.lineOf(FILE, selected)}, .*\\(${selected.length} selected\\)`));
  assert.ok((await linked("ir")).some((text) => text.includes("reduce_sum")));

  await bench.goTo(bench.lineOf(FILE, "weights = torch.exp"), 45);
  await until(
    () => linked("ir"),
    (texts) => texts.length > 0 && texts.every((text) => !text.includes("reduce_sum")),
  );
});

step("the drilldown follows the cursor into another function", async () => {
  await bench.goTo(bench.lineOf(FILE, "hidden = F.gelu"), 15);
  const chosen = bench.panel("drilldown").getByLabel("Function", { exact: true });
  await until(
    () => chosen.inputValue(),
    (name) => name === "mlp",
  );
  await until(
    () => linked("ir"),
    (texts) => texts.some((text) => text.includes("gelu")),
  );
});

step("an edit reaches the panel, and a broken text leaves the last good one", async () => {
  await bench.goTo(bench.lineOf(FILE, "return x + (hidden"), 1);
  await bench.page.keyboard.press("End");
  await bench.page.keyboard.insertText(" +");
  await bench.panel("drilldown").getByText("The newest text cannot be shown yet").waitFor();
  assert.ok((await bench.panel("drilldown").locator('.column[data-column="ir"] .row').count()) > 3);
  await bench.page.keyboard.press("Backspace");
  await bench.page.keyboard.press("Backspace");
  await bench.panel("drilldown").getByText("The newest text cannot be shown yet").waitFor({ state: "hidden" });
});

step("the heatmap: numbers on nodes and lines, heat in the editor", async () => {
  await bench.goTo(bench.lineOf(FILE, "hidden = F.gelu"), 15);
  await bench.command("Cuvil: Open Fusion Heatmap");
  const panel = bench.panel("heatmap");
  await panel.locator(".node").first().waitFor();
  assert.match(await panel.locator(".legend").getAttribute("aria-label"), /FLOP\/B, the ridge point of/);
  assert.ok((await panel.locator(".node.value").count()) > 3);
  await until(
    () => bench.editor(FILE).locator('.view-overlays .cdr[class*="TextEditorDecorationType"]').count(),
    (n) => n >= 2,
  );
  await bench.page.locator(".statusbar-item", { hasText: "FLOP/B" }).waitFor();

  await panel.locator(".node", { hasText: "tanh" }).first().click();
  // The cursor was on that line already: what tells is that the operation's own text is selected.
  await bench.cursorAt(new RegExp(`^Ln ${bench.lineOf(FILE, "hidden = F.gelu")}, .* selected`));
});

step("a stage as a read-only document", async () => {
  await bench.goTo(bench.lineOf(FILE, "hidden = F.gelu"), 15);
  await bench.command("Cuvil: Show LLVM IR");
  const document = bench.page.locator('.monaco-editor[data-uri^="cuvil:"][data-uri$="mlp.llvm"]');
  await until(
    () => document.locator(".view-line").allInnerTexts(),
    (lines) => lines.some((line) => line.replaceAll("\u00a0", " ").includes("define ")),
  );
});

step("the same in every theme", async () => {
  for (const [key, { webview }] of Object.entries(THEMES)) {
    await bench.theme(key);
    await bench.page.locator(".tab", { hasText: "Cuvil Fusion Heatmap" }).click();
    await bench.panel("heatmap", webview).waitFor();
    await bench.panel("heatmap").locator(".node").first().waitFor();
    await bench.screenshot(`heatmap-${key}`);
    await bench.page.locator(".tab", { hasText: "Cuvil Drilldown" }).click();
    await bench.panel("drilldown", webview).locator(".row.linked").first().waitFor();
    await bench.screenshot(`drilldown-${key}`);
  }
});

// CUVIL_PICTURES=1 makes the pictures of the README anew.
if (process.env.CUVIL_PICTURES) {
  step("pictures", async () => {
    const { page } = bench;
    await bench.theme("dark");
    await page.setViewportSize({ width: 1720, height: 760 });
    await page.locator(".tab", { hasText: "mlp.llvm" }).click();
    await bench.command("View: Close Editor");
    const panel = bench.panel("drilldown", THEMES.dark.webview);
    const column = (id) => panel.locator(`.toggles button[data-column="${id}"]`);
    await panel.locator(".row").first().waitFor();
    await column("asm").click();
    for (let depth = 3; depth < 5; depth++)
      await panel.getByRole("button", { name: "Highlight one layer more" }).click();
    await bench.goTo(bench.lineOf(FILE, "weights = torch.exp"), 16);
    const shown = panel.getByLabel("Function", { exact: true });
    await until(
      () => shown.inputValue(),
      (name) => name === "stable_softmax",
    );
    await until(
      () => linked("asm"),
      (lines) => lines.length > 0,
    );
    await page.mouse.move(5, 400);
    await bench.picture("drilldown");

    await page.locator(".tab", { hasText: "Cuvil Fusion Heatmap" }).click();
    await bench.panel("heatmap").locator(".node").first().waitFor();
    await bench.goTo(bench.lineOf(FILE, "scores = q @ keys"), 20);
    const heat = bench.panel("heatmap", THEMES.dark.webview);
    await heat.locator(".node.linked", { hasText: "matmul" }).first().waitFor();
    await heat.locator(".node.linked", { hasText: "matmul" }).first().hover();
    await heat.locator(".heat-card").waitFor();
    await bench.picture("heatmap");
  });
}

step("nothing was asked of any other machine", () => assert.deepEqual(bench.outside, []));
