// The counts since the server's start as a table: a row for each model.

import { element, fill } from "../dom.js";
import { LANGUAGE, translate } from "../texts/texts.js";
import { formats, written } from "./formats.js";

const SHARES = [0.5, 0.9, 0.99];
const HISTOGRAMS = { firstToken: "figures.firstTokenShare", betweenTokens: "figures.betweenTokensShare" };

export class TotalsView {
  #body = element("tbody");
  #started = element("p", { class: "note" });

  constructor() {
    const latencies = Object.values(HISTOGRAMS).flatMap((key) => SHARES.map((share) => translate(key, { percent: String(share * 100) })));
    const heads = [translate("page.model"), translate("figures.answers"), translate("figures.promptTokens"), translate("figures.fromCache"), translate("figures.generatedTokens"), ...latencies];
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", text })));
    const title = translate("figures.sinceStart");
    const table = element("table", {}, element("thead", {}, head), this.#body);
    const scroll = element("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": title }, table);
    this.element = element("section", { class: "chart totals" }, element("h2", { text: title }), this.#started, scroll);
  }

  update({ totals, started_s: started }) {
    const time = new Date(started * 1000).toLocaleString(LANGUAGE, { dateStyle: "medium", timeStyle: "short" });
    this.#started.textContent = started === null ? "" : translate("figures.startedAt", { time });
    fill(this.#body, ...totals.map(rowOf));
  }
}

function rowOf(counts) {
  const { model, answers, promptTokens, cachedTokens, generatedTokens } = counts;
  const latencies = Object.keys(HISTOGRAMS).flatMap((name) => SHARES.map((share) => written(formats.seconds, counts.quantile(name, share))));
  const numbers = [answers, promptTokens, cachedTokens, generatedTokens].map((count) => written(formats.count, count));
  const name = element("bdi", { text: model ?? translate("figures.allModels") });
  return element("tr", {}, element("th", { scope: "row" }, name), ...[...numbers, ...latencies].map((text) => element("td", { text })));
}
