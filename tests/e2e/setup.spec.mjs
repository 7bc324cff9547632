// The first minute of someone whose Python has no Cuvil: one message that says so and what to do, and all is well once that is done.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ROOT, startWorkbench, until } from "./workbench.mjs";

const FILE = "attention.py";
const WITHOUT = "/nowhere/bin/python";
let bench;
let failed = true;
before(async () => {
  bench = await startWorkbench({ settings: { "cuvil.interpreter": WITHOUT } });
});
after(() => bench?.stop({ failed }));

test("one message with a button, then findings", async () => {
  await bench.openFile(FILE);
  const message = bench.page.locator(".notifications-toasts .notification-list-item", {
    hasText: `Cuvil is not installed for ${WITHOUT}.`,
  });
  await message.waitFor();
  assert.deepEqual(await message.locator(".notification-list-item-buttons-container .monaco-button").allInnerTexts(), [
    "Install",
    "Select Interpreter",
  ]);
  assert.equal(await bench.page.locator(".notifications-toasts .notification-list-item").count(), 1);
  assert.equal(await bench.editor(FILE).locator(".squiggly-warning").count(), 0);

  writeFileSync(
    join(bench.workspace, ".vscode/settings.json"),
    JSON.stringify({ ...bench.settings, "cuvil.interpreter": join(ROOT, ".venv/bin/python") }),
  );
  await bench.goTo(bench.lineOf(FILE, "return (best - labels)"));
  await until(
    () => bench.editor(FILE).locator(".squiggly-warning").count(),
    (count) => count >= 1,
    60_000,
  );
  failed = false;
});
