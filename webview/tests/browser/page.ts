// Runs in the browser before the bundle: gives it the fixture host, and the test a handle on it.
import { large } from "../../fixtures/large.ts";
import * as softmax from "../../fixtures/softmax.ts";
import type { Payload } from "../../src/host.ts";
import { FixtureHost } from "../../src/hosts/fixture.ts";

const params = new URLSearchParams(location.search);
const panel = params.get("panel") ?? "drilldown";
const payloads: Payload[] = params.has("large")
  ? [large(Number(params.get("large")))]
  : [softmax.drilldown, softmax.heatmap];
const host = new FixtureHost({ panel, path: softmax.PATH, position: null, function: "" }, payloads);
window.cuvilHost = host;
Object.assign(window, { host, softmax });
const theme = params.get("theme");
if (theme) document.documentElement.dataset.theme = theme;
