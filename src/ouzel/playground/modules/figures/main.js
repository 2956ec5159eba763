// The page of live figures: the newest numbers, and charts of the last ten minutes.

import { Api } from "../api.js";
import { byId, element, fill } from "../dom.js";
import { formatNumber, translate } from "../texts/texts.js";
import { applyTheme, nextTheme } from "../theme.js";
import { Chart } from "./chart.js";
import { CHARTS } from "./charts.js";
import { formats, timeText, written } from "./formats.js";
import { History } from "./history.js";
import { Poller, States } from "./poller.js";
import { TotalsView } from "./totals_view.js";

const history = new History();
const charts = CHARTS.map((definition) => new Chart(definition));
const totals = new TotalsView();
let state = null;
let lost_s = 0; // when the server was last out of reach
let numRestarts = 0;

function takeReading(reading) {
  history.add(Date.now() / 1000, reading);
  numRestarts = reading.counters.get("engine_restarts");
  document.body.classList.add("ready");
  for (const chart of charts) chart.update(history);
  drawTiles(reading);
  totals.update(reading);
}

function drawTiles({ gauges, counters }) {
  const window = history.windows(10).at(-1);
  const lastMinute = history.windows(60).at(-1);
  fill(
    byId("tiles"),
    tile(translate("figures.running"), written(formats.count, gauges.get("num_requests_running"))),
    tile(translate("figures.waiting"), written(formats.count, gauges.get("num_requests_waiting"))),
    tile(translate("figures.generated"), written(formats.rate, window.rate("generation_tokens"))),
    tile(translate("figures.firstTokenHalf"), written(formats.seconds, lastMinute.quantile("time_to_first_token_seconds", 0.5))),
    tile(translate("figures.kvCacheTile"), written(formats.share, gauges.get("kv_cache_usage_perc"))),
    tile(translate("figures.tokensSinceStart"), written(formats.count, counters.get("generation_tokens"))),
    tile(translate("figures.engineRestarts"), formatNumber(numRestarts), numRestarts > 0),
  );
}

function tile(name, value, isAlarming = false) {
  return element("div", { class: isAlarming ? "tile alarming" : "tile" }, element("dt", { text: name }), element("dd", { text: value }));
}

/** Says what is new about the server; nothing where nothing is, so that screen readers are quiet. */
function takeState(newState, trouble) {
  const form = byId("key-form");
  const hadFocus = form.contains(document.activeElement);
  form.hidden = newState !== States.needsKey;
  if (form.hidden && hadFocus) byId("figures").focus();
  if (newState === States.needsKey) byId("key-trouble").textContent = trouble;
  if (newState === state) return;
  if (newState === States.unreached) lost_s = Date.now() / 1000;
  say(textOf(newState, trouble), newState);
  if (newState === States.needsKey) byId("key").focus();
  state = newState;
}

function textOf(newState, trouble) {
  if (newState === States.unreached) return translate("figures.outOfReach", { time: timeText(lost_s) });
  if (newState === States.hasNone) return translate("figures.hidden", { trouble });
  if (newState === States.needsKey) return translate("figures.needsKey");
  return state === States.unreached ? translate("figures.isBack", { time: timeText(Date.now() / 1000) }) : translate("figures.renewed");
}

function say(text, kind) {
  const status = byId("state");
  status.textContent = text;
  status.className = kind === States.reached ? "muted" : "trouble";
}

applyTheme();
byId("theme").addEventListener("click", () => nextTheme());
byId("charts").append(totals.element, ...charts.map((chart) => chart.element));
const poller = new Poller({ onReading: takeReading, onState: takeState });
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  Api.keepKey(byId("key").value.trim());
  byId("key").value = "";
  poller.askNow();
});
poller.start();
