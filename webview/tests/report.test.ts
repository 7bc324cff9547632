import { describe, expect, test } from "vitest";
import { drilldown, heatmap, PATH } from "../fixtures/softmax.ts";
import { ReportHost } from "../src/hosts/report.ts";

const request = { panel: "drilldown", path: PATH, position: null, function: "" };
const mlp = { ...drilldown, function: "mlp" };
const open = (data: unknown) => new ReportHost(request, JSON.stringify(data));

describe("a report finds its payloads", () => {
  const host = open({
    version: 1,
    panels: [{ id: "drilldown", title: "Drilldown", question: "" }],
    payloads: { "drilldown:stable_softmax": drilldown, "heatmap:stable_softmax": heatmap, "drilldown:mlp": mlp },
  });

  test("by panel and function", async () => {
    expect((await host.view({ ...request, function: "mlp" })).function).toBe("mlp");
    expect((await host.view({ ...request, panel: "heatmap" })).panel).toBe("heatmap");
  });

  test("it offers only functions that are in the file", async () =>
    expect((await host.view(request)).functions).toEqual(["stable_softmax", "mlp"]));

  test("a panel mounted later starts with the function shown last", async () => {
    await host.view({ ...request, function: "mlp" });
    expect(host.request.function).toBe("mlp");
  });

  test("without a list of panels, those that have payloads", () =>
    expect(open([drilldown, heatmap]).panels.map(({ id }) => id)).toEqual(["drilldown", "heatmap"]));

  test("a panel that is not in it is refused in words", async () =>
    expect(open([drilldown]).view({ ...request, panel: "heatmap" })).rejects.toThrow(
      "This report has no heatmap panel.",
    ));
});
