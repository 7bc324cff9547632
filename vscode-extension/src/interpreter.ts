// Which Python runs the language server: the setting, else what the Python extension has selected, else the workspace's own
// environment, else the one on the path; of these the first that has Cuvil. In an untrusted workspace nothing that lies in it
// is ever run, so only the last is asked.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";

const PROBE_MS = 15_000;
// -P keeps the workspace's folder off the path, so that a file of its own cannot pass for Cuvil. Python 3.11 has it first.
export const SAFE = "-P";
const PROBE = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('cuvil_lsp') else 3)";

export interface Found {
  /** The interpreter to use; undefined if none of `tried` has Cuvil. */
  readonly python: string | undefined;
  /** Those asked, best first. */
  readonly tried: readonly string[];
}

export async function find(): Promise<Found> {
  const tried = await candidates();
  for (const python of tried) if (await hasCuvil(python)) return { python, tried };
  return { python: undefined, tried };
}

/** Interpreters a person may want, best first. */
export async function candidates(): Promise<string[]> {
  if (!vscode.workspace.isTrusted) return onPath();
  const chosen = vscode.workspace.getConfiguration("cuvil").get<string>("interpreter", "").trim();
  if (chosen) return [expand(chosen)];
  const selected = await fromPythonExtension();
  const own = (vscode.workspace.workspaceFolders ?? [])
    .flatMap(({ uri }) =>
      [".venv", "venv"].map((name) =>
        join(uri.fsPath, name, ...(process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"])),
      ),
    )
    .filter(existsSync);
  return [...new Set([...(selected ? [selected] : []), ...own, ...onPath()])];
}

/** Fires when another interpreter is selected in the Python extension; never without that extension. */
export async function onSelected(listener: () => void): Promise<vscode.Disposable> {
  const api = await pythonExtension();
  return api?.environments?.onDidChangeActiveEnvironmentPath?.(listener) ?? new vscode.Disposable(() => {});
}

const onPath = (): string[] => (process.platform === "win32" ? ["python"] : ["python3", "python"]);

function expand(path: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return path.replace(/\$\{workspaceFolder\}/, folder).replace(/^~(?=[/\\])/, process.env.HOME ?? "~");
}

function hasCuvil(python: string): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(python, [SAFE, "-c", PROBE], { timeout: PROBE_MS, windowsHide: true }, (problem) =>
      resolve(problem === null),
    );
  });
}

/** The part of the Python extension's public interface (ms-python.python) that is used here. */
interface PythonApi {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

async function pythonExtension(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (!extension) return undefined;
  try {
    return extension.isActive ? extension.exports : await extension.activate();
  } catch {
    return undefined; // a broken Python extension must not take Cuvil with it
  }
}

async function fromPythonExtension(): Promise<string | undefined> {
  const environments = (await pythonExtension())?.environments;
  if (!environments) return undefined;
  try {
    const path = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    return (await environments.resolveEnvironment(path))?.executable.uri?.fsPath;
  } catch {
    return undefined;
  }
}
