// The calls of an answer: what is called with what, and, while nobody has answered them, a place to type the results.

import { button, element } from "../dom.js";
import { translate, translateParts } from "../texts/texts.js";
import { BUILTIN_NAMES, runBuiltin } from "../tools/builtin.js";
import { formatted } from "./hosted_texts.js";

export class ToolCallsView {
  #texts = new Map(); // what has been written as results, by the places of their calls
  #used = new Set(); // the places of those that are said to be results

  /** `onResults` is called with a result for each call, in their order, once there are all. */
  constructor(calls, onResults) {
    this.calls = calls;
    this.onResults = onResults;
    this.element = element("div", { class: "tool-calls" });
  }

  /** Draws the calls; `isOpen` says that they wait for results. */
  draw(isOpen) {
    this.element.replaceChildren(...this.calls.filter(Boolean).map((call, index) => this.#card(call, index, isOpen)));
  }

  #card(call, index, isOpen) {
    const title = element("div", { class: "tool-name" }, ...translateParts("tools.calls", { name: element("code", { text: call.name || "…" }) }));
    const details = element("pre", { class: "tool-arguments", text: formatted(call.arguments) });
    return element("section", { class: "tool-call", "aria-label": translate("tools.callNamed", { name: call.name }) }, title, details, isOpen ? this.#form(call, index) : null);
  }

  #form(call, index) {
    const area = element("textarea", { rows: 2, "aria-label": translate("tools.resultNamed", { name: call.name }), placeholder: translate("tools.whatReturns"), data: { call: index } });
    area.value = this.#texts.get(index) ?? "";
    area.addEventListener("input", () => this.#texts.set(index, area.value));
    const use = button(translate("tools.useResult"), () => this.#take(index, area.value), { class: "primary" });
    const run = () => this.#texts.set(index, (area.value = runBuiltin(call)));
    const canRun = BUILTIN_NAMES.includes(call.name);
    const done = this.#used.has(index) ? element("span", { class: "muted", text: translate("tools.waitsForResults") }) : null;
    return element("div", { class: "tool-result-form" }, area, element("div", { class: "row" }, canRun ? button(translate("tools.run"), run) : null, use, done));
  }

  #take(index, text) {
    this.#texts.set(index, text);
    this.#used.add(index);
    if (this.#used.size === this.calls.length) return this.onResults(this.calls.map((_, each) => this.#texts.get(each)));
    this.draw(true);
    const next = this.calls.findIndex((_, each) => !this.#used.has(each));
    this.element.querySelector(`[data-call="${next}"]`).focus();
  }
}
