// Packs the built extension as ../dist/cuvil-VERSION.vsix, with the project's licence in it, and refuses one over 2 MB.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const LIMIT = 2_000_000;
const here = dirname(fileURLToPath(import.meta.url));
const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const target = join(here, "../dist", `cuvil-${version}.vsix`);
mkdirSync(dirname(target), { recursive: true });
rmSync(target, { force: true });
copyFileSync(join(here, "../LICENSE"), join(here, "LICENSE"));
const vsce = join(here, "../node_modules/@vscode/vsce/vsce");
const { status } = spawnSync(
  process.execPath,
  [vsce, "package", "--no-dependencies", "--allow-missing-repository", "-o", target],
  { cwd: here, stdio: "inherit" },
);
if (status !== 0) process.exit(status ?? 1);
const { size } = statSync(target);
if (size > LIMIT) {
  console.error(`${target} has ${size} bytes, more than ${LIMIT}. What is in it: unzip -l ${target}`);
  process.exit(1);
}
