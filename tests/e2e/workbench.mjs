// The real workbench with the packaged extension, on a copy of examples/, and what a person does in it. One per spec file:
//
//   const bench = await startWorkbench();   await bench.openFile("attention.py");   await bench.stop({ failed });
//
// Waits look until something is so; there is no fixed pause. After a failure the folder is left, with a picture and the logs.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const { CUVIL_E2E_CODE_SERVER, CUVIL_E2E_CHROMIUM } = process.env;
if (!CUVIL_E2E_CODE_SERVER) throw new Error("run this with tests/e2e/run.sh, which installs the workbench first");
export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const ARTIFACTS = join(ROOT, "tests/.artifacts");

// Quiet, steady, and the same in every run.
const USER_SETTINGS = {
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "telemetry.feedback.enabled": false,
  "workbench.enableExperiments": false,
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "workbench.welcomePage.experimentalOnboarding": false,
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "window.autoDetectColorScheme": false,
  "window.autoDetectHighContrast": false,
  "window.menuBarVisibility": "compact",
  "workbench.reduceMotion": "on",
  "workbench.editor.enablePreview": false,
  "workbench.localHistory.enabled": false,
  "editor.cursorBlinking": "solid",
  "editor.minimap.enabled": false,
  "editor.accessibilitySupport": "off",
  "editor.hover.delay": 100,
  "editor.codeLens": true,
  "editor.inlayHints.enabled": "on",
  "editor.lightbulb.enabled": "on",
  "files.autoSave": "off",
  "files.hotExit": "off",
  "git.enabled": false,
  "typescript.tsserver.enabled": false,
  "npm.autoDetect": "off",
};

/** The themes the tests go through, and how to see that each has arrived. */
export const THEMES = {
  dark: { name: "Dark Modern", workbench: "vs-dark", webview: "vscode-dark" },
  light: { name: "Light Modern", workbench: "vs", webview: "vscode-light" },
  "high-contrast": { name: "Default High Contrast", workbench: "hc-black", webview: "vscode-high-contrast" },
};

export async function startWorkbench({ settings = {}, size = { width: 1600, height: 900 } } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "cuvil-e2e-")); // short: it holds a Unix socket
  const workspace = join(dir, "workspace");
  const own = {
    "cuvil.interpreter": join(ROOT, ".venv/bin/python"),
    "workbench.colorTheme": THEMES.dark.name,
    ...settings,
  };
  for (const folder of ["user/User", "extensions", "workspace/.vscode"])
    mkdirSync(join(dir, folder), { recursive: true });
  cpSync(join(ROOT, "examples"), workspace, {
    recursive: true,
    filter: (path) => !path.includes("__pycache__") && !path.includes(".cuvil"),
  });
  writeFileSync(join(dir, "user/User/settings.json"), JSON.stringify(USER_SETTINGS));
  writeFileSync(join(workspace, ".vscode/settings.json"), JSON.stringify(own));
  commit(workspace);

  const flags = [
    "--config",
    join(dir, "config.yaml"),
    "--user-data-dir",
    join(dir, "user"),
    "--extensions-dir",
    join(dir, "extensions"),
  ];
  const installed = spawnSync(
    process.execPath,
    [CUVIL_E2E_CODE_SERVER, ...flags, "--install-extension", vsix(), "--force"],
    { encoding: "utf8" },
  );
  if (installed.status !== 0)
    throw new Error(`the extension was not installed: ${installed.stdout}${installed.stderr}`);

  const port = await freePort();
  const server = spawn(
    process.execPath,
    [
      CUVIL_E2E_CODE_SERVER,
      "--auth",
      "none",
      "--bind-addr",
      `127.0.0.1:${port}`,
      ...flags,
      "--disable-telemetry",
      "--disable-update-check",
      "--disable-workspace-trust",
    ],
    {
      detached: true, // so that its whole group can be ended: the extension host and the language server with it
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        EXTENSIONS_GALLERY: "{}",
        XDG_DATA_HOME: join(dir, "data"),
        XDG_CACHE_HOME: join(dir, "cache"),
      },
    },
  );
  const log = createWriteStream(join(dir, "server.log"));
  server.stdout.pipe(log);
  server.stderr.pipe(log);
  await until(
    () =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    Boolean,
    30_000,
  );

  const browser = await chromium.launch({
    executablePath: CUVIL_E2E_CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const page = await browser.newPage({ viewport: size });
  page.setDefaultTimeout(20_000);
  // Cuvil asks nobody outside this machine; a request that tries is stopped and counted.
  const outside = [];
  await page.context().route(
    (url) => !["127.0.0.1", "localhost"].includes(url.hostname) && url.protocol.startsWith("http"),
    (route) => {
      outside.push(route.request().url());
      return route.abort();
    },
  );
  await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`);
  await page.locator(".monaco-workbench").waitFor();
  return new Workbench({ dir, workspace, page, browser, server, outside, settings: own });
}

class Workbench {
  constructor(parts) {
    Object.assign(this, parts);
  }

  editor(name) {
    return this.page.locator(`.monaco-editor[data-uri$="/${name}"]`).first();
  }

  /** The page inside a panel; `panel` is "drilldown" or "heatmap", `theme` a class that VS Code gives it. */
  panel(panel, theme = "") {
    const frames = this.page.frameLocator('iframe.webview.ready[src*="extensionId=cuvil.cuvil"]');
    return frames
      .frameLocator("#active-frame")
      .locator(`body${theme && `.${theme}`}:has(#cuvil[data-panel="${panel}"])`);
  }

  async openFile(name) {
    await this.page.getByRole("treeitem", { name: new RegExp(`^${escaped(name)}`) }).click();
    await this.editor(name).locator(".view-line").first().waitFor();
  }

  /** Runs a command by its full title; the palette's first row is only its best guess. */
  async command(title) {
    await this.page.keyboard.press("F1");
    await this.quickInput(`>${title}`);
    await this.page
      .locator(".quick-input-list")
      .getByRole("option", { name: new RegExp(`^${escaped(title)}(,|$)`) })
      .click();
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** Asks again when a panel that was clicked took the focus from the question, as a user does. Enter is pressed only in the question:
   *  in a panel it would choose a row, and the editor would go there. */
  async goTo(line, column = 1) {
    const there = new RegExp(`^Ln ${line}, Col ${column}\\b`);
    const ask = async () => {
      await this.page.keyboard.press("Escape");
      await this.cursorAt(/^Ln/);
      await this.page.keyboard.press("Control+g");
      try {
        const box = await this.quickInput(`:${line}:${column}`, 2_000);
        await this.page
          .locator(".quick-input-list")
          .getByRole("option", { name: new RegExp(`\\b${line}\\b`) })
          .waitFor({ timeout: 2_000 });
        if (!(await box.evaluate((input) => input === document.activeElement))) return "the question lost the focus";
        await this.page.keyboard.press("Enter");
        await this.cursorAt(there, 2_000);
      } catch (problem) {
        return String(problem);
      }
      return "";
    };
    await until(ask, (problem) => !problem);
  }

  /** "Ln 15, Col 14 (13 selected)"; "" while no text editor has the focus. */
  async cursor() {
    return (await this.page.locator("#status\\.editor\\.selection").allInnerTexts())[0] ?? "";
  }

  /** Waits for the cursor to be right, with the focus in the text. A panel that was clicked takes the focus a moment later. */
  async cursorAt(right, ms = 20_000) {
    const look = async () => {
      const seen = await this.cursor();
      if (!seen) await this.page.keyboard.press("Control+1"); // moves nothing but the focus
      return seen;
    };
    await until(look, (text) => right.test(text), ms);
  }

  /** The lines of an editor that are in view, in order. */
  async lines(name) {
    const found = await this.editor(name)
      .locator(".view-line")
      .evaluateAll((all) => all.map((line) => [Number.parseFloat(line.style.top), line.textContent]));
    return found.sort((a, b) => a[0] - b[0]).map(([, text]) => text.replaceAll("\u00a0", " "));
  }

  /** Which number a line of text has in a file of the workspace. */
  lineOf(name, text) {
    const at = this.read(name)
      .split("\n")
      .findIndex((line) => line.includes(text));
    if (at < 0) throw new Error(`${name} has no line with ${JSON.stringify(text)}`);
    return at + 1;
  }

  read(name) {
    return readFileSync(join(this.workspace, name), "utf8");
  }

  async theme(key) {
    const { name, workbench } = THEMES[key];
    this.settings["workbench.colorTheme"] = name;
    writeFileSync(join(this.workspace, ".vscode/settings.json"), JSON.stringify(this.settings));
    await this.page.locator(`.monaco-workbench.${workbench}`).waitFor();
  }

  async screenshot(name) {
    mkdirSync(ARTIFACTS, { recursive: true });
    await this.page.screenshot({ path: join(ARTIFACTS, `${name}.png`) });
  }

  /** A picture for the README. */
  async picture(name) {
    await this.page.screenshot({ path: join(ROOT, `docs/images/${name}.png`) });
  }

  async stop({ failed }) {
    if (failed) await this.page.screenshot({ path: join(this.dir, "failed.png") }).catch(() => {});
    await this.browser.close();
    if (this.server.exitCode === null) {
      const gone = once(this.server, "exit");
      process.kill(-this.server.pid, "SIGTERM");
      await Promise.race([gone, sleep(5_000, undefined, { ref: false })]);
    }
    if (failed) console.error(`left for a look: ${this.dir} (failed.png, server.log, user/logs)`);
    else rmSync(this.dir, { recursive: true, force: true });
  }

  async quickInput(text, timeout = 20_000) {
    const box = this.page.locator('.quick-input-widget input[type="text"]').first();
    await box.waitFor({ timeout });
    await box.fill(text, { timeout });
    return box;
  }
}

/** Looks until what it sees is right, and gives it back. */
export async function until(look, right, ms = 20_000) {
  for (const end = Date.now() + ms; ; ) {
    const seen = await look();
    if (right(seen)) return seen;
    if (Date.now() > end) throw new Error(`after ${ms} ms still: ${JSON.stringify(seen)}`);
    await sleep(50);
  }
}

function vsix() {
  const dist = join(ROOT, "dist");
  const name = readdirSync(dist).find((file) => file.endsWith(".vsix"));
  if (!name) throw new Error("there is no dist/*.vsix; first: npm run package");
  return join(dist, name);
}

/** So that the lens that compares with the last commit has one. */
function commit(folder) {
  const git = (...args) =>
    spawnSync(
      "git",
      ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", ...args],
      { cwd: folder },
    );
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "examples");
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
