// The commands, one line each, and what the longer ones do. A code lens calls them with the function it stands above; from
// the palette they are about the function at the cursor.
import * as vscode from "vscode";
import type { HeatmapPayload, ViewRequest } from "../../webview/src/protocol.ts";
import type { Client } from "./client.ts";
import type { Heat } from "./decorations.ts";
import { SAFE } from "./interpreter.ts";
import type { PanelHost, PanelId } from "./panelHost.ts";
import { pythonEditor, toCuvil } from "./place.ts";
import type { VirtualDocuments } from "./virtualDocuments.ts";

interface FromLens {
  readonly path: string;
  readonly function: string;
  readonly line: number;
}

export function registerCommands(
  client: Client,
  panels: PanelHost,
  documents: VirtualDocuments,
  heat: Heat,
): vscode.Disposable[] {
  const open = (panel: PanelId) => (lens?: FromLens) => {
    const request = requestFor(panel, lens);
    if (request) panels.show(panel, request);
  };
  const show = (stage: string) => async () => {
    const request = requestFor("heatmap", undefined);
    if (!request) return;
    const { path, function: name } = await client.request<HeatmapPayload>("cuvil/view", request);
    await documents.open(path, name, stage);
  };
  const commands: Record<string, (argument?: FromLens) => unknown> = {
    openDrilldown: open("drilldown"),
    openHeatmap: open("heatmap"),
    toggleHeat: () => heat.toggle(),
    compile: () => compile(client),
    showIr: show("ir"),
    showLlvm: show("llvm"),
    showAssembly: show("asm"),
    showDiff: (lens) => compareWithCommit(lens),
    selectInterpreter: () => client.selectInterpreter(),
    restart: () => client.restart(),
    showLog: () => client.log.show(),
  };
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`cuvil.${name}`, async (argument?: FromLens) => {
      try {
        await run(argument);
      } catch (problem) {
        void vscode.window.showErrorMessage(problem instanceof Error ? problem.message : String(problem));
      }
    }),
  );
}

function editorOrHint(): vscode.TextEditor | undefined {
  const editor = pythonEditor();
  if (!editor)
    void vscode.window.showInformationMessage("Open a Python file first, and put the cursor into a function.");
  return editor;
}

function requestFor(panel: PanelId, lens: FromLens | undefined): ViewRequest | undefined {
  if (lens?.path) return { panel, path: lens.path, position: { line: lens.line, column: 1 }, function: lens.function };
  const editor = editorOrHint();
  if (!editor) return undefined;
  return {
    panel,
    path: editor.document.uri.fsPath,
    position: toCuvil(editor.document, editor.selection.active),
    function: "",
  };
}

/** In a terminal, so that a person sees what the compiler says. The menus offer this only with trust; a keybinding asks no menu. */
async function compile(client: Client): Promise<void> {
  const editor = editorOrHint();
  if (!editor) return;
  if (!vscode.workspace.isTrusted) {
    const manage = "Manage Workspace Trust";
    if (
      (await vscode.window.showWarningMessage(
        "Compiling runs Cuvil on this workspace's code, which needs its trust.",
        manage,
      )) === manage
    ) {
      await vscode.commands.executeCommand("workbench.trust.manage");
    }
    return;
  }
  await editor.document.save();
  const target = vscode.workspace.getConfiguration("cuvil", editor.document.uri).get<string>("target", "cpu");
  const run = new vscode.ProcessExecution(client.python || "python3", [
    SAFE,
    "-m",
    "cuvil_cli",
    "compile",
    editor.document.uri.fsPath,
    "--target",
    target,
  ]);
  const scope = vscode.workspace.getWorkspaceFolder(editor.document.uri) ?? vscode.TaskScope.Workspace;
  const task = new vscode.Task({ type: "cuvil", task: "compile" }, scope, "Compile", "Cuvil", run);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true, focus: false };
  await vscode.tasks.executeTask(task);
}

/** The part of the built-in Git extension's interface that is used here. */
interface Git {
  getAPI(version: 1): { toGitUri(uri: vscode.Uri, ref: string): vscode.Uri; getRepository(uri: vscode.Uri): unknown };
}

/** The text of the last commit beside the one of now; the lens says what the difference means. */
async function compareWithCommit(lens: FromLens | undefined): Promise<void> {
  const uri = lens?.path ? vscode.Uri.file(lens.path) : pythonEditor()?.document.uri;
  if (!uri) return;
  const extension = vscode.extensions.getExtension<Git>("vscode.git");
  const git = extension && (extension.isActive ? extension.exports : await extension.activate()).getAPI(1);
  if (!git?.getRepository(uri)) {
    void vscode.window.showInformationMessage(
      "This file is in no Git repository that VS Code has open, so there is no last commit to compare with.",
    );
    return;
  }
  const name = vscode.workspace.asRelativePath(uri);
  await vscode.commands.executeCommand("vscode.diff", git.toGitUri(uri, "HEAD"), uri, `${name} (HEAD ↔ now)`, {
    selection: new vscode.Range((lens?.line ?? 1) - 1, 0, (lens?.line ?? 1) - 1, 0),
  });
}
