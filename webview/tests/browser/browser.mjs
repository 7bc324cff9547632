// A browser on the built bundle, under the policy that VS Code's webviews have. One page per call of `open`.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "../../dist");
export const POLICY = "default-src 'none'; script-src 'nonce-test'; style-src 'self'";

export async function startBrowser() {
  const fixture = await esbuild.build({
    entryPoints: [join(here, "page.ts")],
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
  });
  const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cuvil</title><link rel="stylesheet" href="panels.css"></head>
<body><div id="cuvil" data-panel="PANEL"></div><script nonce="test" src="fixture.js"></script><script nonce="test" src="panels.js"></script></body></html>`;
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const answer = (type, body) =>
      response
        .writeHead(200, { "content-type": `${type}; charset=utf-8`, "content-security-policy": POLICY })
        .end(body);
    if (url.pathname === "/") answer("text/html", page.replace("PANEL", url.searchParams.get("panel") ?? "drilldown"));
    else if (url.pathname === "/fixture.js") answer("text/javascript", fixture.outputFiles[0].contents);
    else if (url.pathname === "/panels.js") answer("text/javascript", await readFile(join(dist, "panels.js")));
    else if (url.pathname === "/panels.css") answer("text/css", await readFile(join(dist, "panels.css")));
    else response.writeHead(204).end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  const browser = await chromium.launch({
    executablePath: process.env.CUVIL_E2E_CHROMIUM ?? "/usr/bin/chromium",
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
  return {
    /** Opens a panel with the fixture; `violations` fills with what the policy blocked and with errors of scripts. */
    async open(query, size = { width: 1400, height: 700 }) {
      const page = await browser.newPage({ viewport: size });
      page.setDefaultTimeout(10_000);
      const violations = [];
      page.on("console", (message) => {
        if (message.type() === "error") violations.push(message.text());
      });
      page.on("pageerror", (problem) => violations.push(String(problem)));
      await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams(query)}`);
      await page.locator('body[data-ready="1"]').waitFor();
      return { page, violations };
    },
    async stop() {
      await browser.close();
      server.close();
    },
  };
}
