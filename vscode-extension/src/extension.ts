// Activation: one thing made and registered a line.
import type * as vscode from "vscode";
import { Client } from "./client.ts";
import { registerCommands } from "./commands.ts";
import { Heat } from "./decorations.ts";
import { PanelHost } from "./panelHost.ts";
import { StatusItem } from "./status.ts";
import { VirtualDocuments } from "./virtualDocuments.ts";

let client: Client | undefined;

export function activate(context: vscode.ExtensionContext): void {
  client = new Client();
  const panels = new PanelHost(client, context.extensionUri);
  const documents = new VirtualDocuments(client);
  const heat = new Heat(client, panels);
  context.subscriptions.push(
    new StatusItem(client),
    panels,
    documents,
    heat,
    ...registerCommands(client, panels, documents, heat),
  );
  void client.start();
}

export function deactivate(): Promise<void> | undefined {
  return client?.dispose();
}
