// Between Cuvil's places (1-based, columns count code points) and VS Code's (0-based, columns count UTF-16 units).
import * as vscode from "vscode";
import type { Place, Position } from "../../webview/src/protocol.ts";

/** The editor that commands and heat are about: the active one, or while a panel has the focus, one that can be seen. */
export function pythonEditor(): vscode.TextEditor | undefined {
  const all = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors];
  return all.find((editor) => editor?.document.languageId === "python" && editor.document.uri.scheme === "file");
}

export function toCuvil(document: vscode.TextDocument, { line, character }: vscode.Position): Position {
  return { line: line + 1, column: codePoints(document.lineAt(line).text.slice(0, character)) + 1 };
}

export function toRange(document: vscode.TextDocument, { range }: Place): vscode.Range {
  return new vscode.Range(toVsCode(document, range.start), toVsCode(document, range.end));
}

function toVsCode(document: vscode.TextDocument, { line, column }: Position): vscode.Position {
  const at = Math.min(Math.max(0, line - 1), document.lineCount - 1);
  const before = [...document.lineAt(at).text].slice(0, Math.max(0, column - 1)).join("");
  return new vscode.Position(at, before.length);
}

const codePoints = (text: string): number => [...text].length;
