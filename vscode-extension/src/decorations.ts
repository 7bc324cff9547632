// Heat in the editor: each line that does work gets a tint, a mark at its left and in the overview ruler, and its number behind it.
// Seven decoration types in all, whatever the file: editors slow down with many. On while the heatmap panel is shown, or by
// command. In high contrast the tint is left out and the mark alone speaks.
import * as vscode from "vscode";
import { colourAt, css, kindOf, type Scale } from "../../webview/src/colour.ts";
import { number } from "../../webview/src/legend-text.ts";
import type { HeatmapPayload } from "../../webview/src/protocol.ts";
import type { Client } from "./client.ts";
import type { PanelHost } from "./panelHost.ts";
import { pythonEditor, toCuvil } from "./place.ts";

const STEPS = 7;
const METRIC = "intensity";
const SETTLE_MS = 500;

export class Heat implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private readonly legend = vscode.window.createStatusBarItem("cuvil.heat", vscode.StatusBarAlignment.Right, 90);
  private readonly types = new Map<Scale, vscode.TextEditorDecorationType[]>();
  private chosen = false; // by command; the heatmap panel turns heat on as well
  private shown: { readonly uri: string; readonly payload: HeatmapPayload } | undefined;
  private settling: NodeJS.Timeout | undefined;

  constructor(
    private readonly client: Client,
    private readonly panels: PanelHost,
  ) {
    this.legend.name = "Cuvil heat";
    this.legend.command = "cuvil.toggleHeat";
    this.subscriptions = [
      this.legend,
      panels.onVisibility(() => this.soon()),
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (this.isOn() && !this.covers(textEditor)) this.soon();
      }),
      vscode.window.onDidChangeActiveColorTheme(() => {
        this.disposeTypes();
        this.soon();
      }),
      client.onViewChanged(() => {
        if (this.isOn()) this.soon();
      }),
    ];
  }

  toggle(): void {
    this.chosen = !this.isOn();
    if (!this.chosen && this.panels.isVisible("heatmap")) {
      void vscode.window.showInformationMessage("Heat stays in the editor while the Fusion Heatmap panel is shown.");
    }
    this.soon();
  }

  dispose(): void {
    clearTimeout(this.settling);
    this.disposeTypes();
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private isOn(): boolean {
    return this.chosen || this.panels.isVisible("heatmap");
  }

  private covers(editor: vscode.TextEditor): boolean {
    if (!this.shown || this.shown.uri !== editor.document.uri.toString()) return false;
    const line = editor.selection.active.line + 1;
    const { first_line, source } = this.shown.payload;
    return line >= first_line && line < first_line + source.length;
  }

  private soon(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => void this.update(), SETTLE_MS / (this.shown ? 1 : 4));
  }

  private async update(): Promise<void> {
    if (!this.isOn()) {
      this.clear();
      return;
    }
    const editor = pythonEditor();
    if (!editor) return;
    const { document } = editor;
    try {
      const payload = await this.client.request<HeatmapPayload>("cuvil/view", {
        panel: "heatmap",
        path: document.uri.fsPath,
        position: toCuvil(document, editor.selection.active),
        function: "",
      });
      this.shown = { uri: document.uri.toString(), payload };
      this.draw(editor, payload);
    } catch (problem) {
      // No function here, or a text that cannot be read right now: what is shown stays.
      this.client.log.appendLine(`No heat: ${problem instanceof Error ? problem.message : String(problem)}`);
    }
  }

  private draw(editor: vscode.TextEditor, payload: HeatmapPayload): void {
    const metric = payload.metrics.find(({ id }) => id === METRIC);
    const types = metric ? this.typesOf(metric.scale) : [];
    const steps: vscode.DecorationOptions[][] = types.map(() => []);
    for (const { line, heat } of payload.lines[METRIC] ?? []) {
      if (line > editor.document.lineCount || kindOf(heat.value, heat.position) !== "value") continue;
      const { range } = editor.document.lineAt(line - 1);
      steps[Math.min(STEPS - 1, Math.floor(heat.position! * STEPS))]?.push({
        range,
        renderOptions: { after: { contentText: heat.label } },
      });
    }
    for (const other of vscode.window.visibleTextEditors) {
      for (const [scale, all] of this.types) {
        for (const [step, type] of all.entries())
          other.setDecorations(type, other === editor && scale === metric?.scale ? steps[step]! : []);
      }
    }
    if (!metric) {
      this.legend.hide();
      return;
    }
    this.legend.text = `$(flame) ${number(metric.low)}–${number(metric.high)} ${metric.unit}`;
    const ridge =
      metric.centre === null
        ? ""
        : ` The ridge point of ${payload.machine} is ${number(metric.centre)}: blue lines wait for memory, orange ones compute.`;
    this.legend.tooltip = `${metric.title} of ${payload.function}, ${metric.provenance}.${ridge}`;
    this.legend.show();
  }

  private clear(): void {
    this.shown = undefined;
    this.legend.hide();
    for (const editor of vscode.window.visibleTextEditors) {
      for (const all of this.types.values()) for (const type of all) editor.setDecorations(type, []);
    }
  }

  private typesOf(scale: Scale): vscode.TextEditorDecorationType[] {
    const there = this.types.get(scale);
    if (there) return there;
    const highContrast = [vscode.ColorThemeKind.HighContrast, vscode.ColorThemeKind.HighContrastLight].includes(
      vscode.window.activeColorTheme.kind,
    );
    const made = Array.from({ length: STEPS }, (_, step) => {
      const rgb = colourAt(scale, (step + 0.5) / STEPS);
      return vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        ...(highContrast ? {} : { backgroundColor: `rgba(${rgb.join(", ")}, 0.16)` }),
        borderWidth: "0 0 0 4px",
        borderStyle: "solid",
        borderColor: css(rgb),
        overviewRulerColor: css(rgb),
        overviewRulerLane: vscode.OverviewRulerLane.Right,
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
        after: { margin: "0 0 0 3ch", color: new vscode.ThemeColor("editorCodeLens.foreground") },
      });
    });
    this.types.set(scale, made);
    return made;
  }

  private disposeTypes(): void {
    for (const all of this.types.values()) for (const type of all) type.dispose();
    this.types.clear();
  }
}
