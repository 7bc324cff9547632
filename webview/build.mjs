// Builds the panels once and lays the bundle where it is served from: webview/dist itself (tests), the extension's
// dist/webview and the command-line tool's studio folder. Those three are git-ignored; this script is their only source.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
const homes = [join(here, "../vscode-extension/dist/webview"), join(here, "../language_server/cuvil_cli/studio")];

const layOut = {
  name: "lay-out",
  setup(build) {
    build.onEnd((result) => {
      if (result.errors.length) return;
      for (const home of homes) {
        rmSync(home, { recursive: true, force: true });
        mkdirSync(home, { recursive: true });
        cpSync(dist, home, { recursive: true });
      }
    });
  },
};

const options = {
  entryPoints: { panels: join(here, "src/main.ts") },
  outdir: dist,
  bundle: true,
  format: "iife",
  target: ["es2022"],
  minify: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  plugins: [layOut],
};

if (process.argv.includes("--watch")) {
  await (await esbuild.context(options)).watch();
} else {
  rmSync(dist, { recursive: true, force: true });
  await esbuild.build(options);
}
