// The completion box: the model goes on with a text, at its end or, where the model can, at the cursor.

import { announce } from "../announcer.js";
import { tokenView } from "../chat/token_view.js";
import { button, element, fill, isComposing } from "../dom.js";
import { KeptText } from "../storage/kept_text.js";
import { formatNumber, translate } from "../texts/texts.js";
import { History } from "./history.js";
import { DEFAULT_MAX_TOKENS, completionBody, runCompletion } from "./run.js";
import { Sheet } from "./sheet.js";

const kept = new KeptText("localStorage", "ouzel.completion");
const MAX_KEPT = 500_000; // characters: a browser's storage is small
const KEEP_AFTER_MS = 300;
const ENDS = { length: "completion.endedByLimit", stopped: "completion.stopped" };

export class Completion {
  #history = new History();
  #running = null; // what ends the run
  #keepTimer = null;

  /** Shows the box in `container`. */
  constructor({ api, settings, container }) {
    Object.assign(this, { api, settings, container });
    this.sheet = new Sheet({ label: translate("completion.text"), placeholder: translate("completion.placeholder"), onEdit: () => this.#changed() });
    this.sheet.show(kept.value);
    this.#build();
    this.draw();
  }

  get isRunning() {
    return this.#running !== null;
  }

  /** Draws what depends on the model and the text. */
  draw() {
    const { model } = this.settings;
    const { isRunning } = this;
    this.run.hidden = isRunning;
    this.end.hidden = !isRunning;
    this.run.disabled = !model.completes;
    this.infill.hidden = !model.fillsIn;
    this.infill.disabled = isRunning;
    this.undo.disabled = !this.#history.canUndo || isRunning;
    this.redo.disabled = !this.#history.canRedo || isRunning;
    this.clear.disabled = this.sheet.text === "" || isRunning;
    this.hint.textContent = hintText(model);
  }

  focus() {
    this.sheet.area.focus();
  }

  stop() {
    this.#running?.abort();
  }

  #build() {
    this.run = button(translate("completion.continue"), () => this.#continue(), { class: "primary", "aria-keyshortcuts": "Control+Enter" });
    this.end = button(translate("composer.stop"), () => this.stop(), { class: "danger" });
    this.infill = button(translate("completion.infill"), () => this.#fillIn());
    this.undo = button(translate("completion.undo"), () => this.#turn("undo"));
    this.redo = button(translate("completion.redo"), () => this.#turn("redo"));
    this.clear = button(translate("completion.clear"), () => this.#clear());
    this.hint = element("p", { class: "muted completion-hint", id: "completion-hint" });
    this.state = element("p", { class: "muted", role: "status" });
    this.fault = element("p", { class: "fault", role: "alert", hidden: true });
    this.tokens = element("div", { class: "completion-tokens" });
    const buttons = element("div", { class: "row" }, this.run, this.end, this.infill, this.undo, this.redo, this.clear);
    fill(this.container, this.hint, this.sheet.element, buttons, this.fault, this.state, this.tokens);
    this.sheet.area.setAttribute("aria-describedby", this.hint.id);
    this.sheet.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || isComposing(event)) return;
      event.preventDefault();
      if (this.settings.model.completes && !this.isRunning) this.#continue();
    });
    addEventListener("pagehide", () => this.#keep());
  }

  #continue() {
    const { text } = this.sheet;
    return this.#start(text.length, { prompt: text });
  }

  #fillIn() {
    const { text, cursor } = this.sheet;
    return this.#start(cursor, { prompt: text.slice(0, cursor), suffix: text.slice(cursor) });
  }

  async #start(place, texts) {
    const { settings, sheet } = this;
    this.#showFault(settings.faults.join("\n"));
    if (settings.faults.length > 0) return;
    this.#history.keep(sheet.text);
    this.#running = new AbortController();
    fill(this.tokens);
    this.state.textContent = "";
    sheet.beginAt(place);
    this.#lock(true);
    announce(translate("completion.begins"));
    const body = completionBody({ model: settings.model.name, settings, ...texts });
    const run = await runCompletion(this.api, body, { signal: this.#running.signal, onText: (text) => sheet.write(text) });
    this.#running = null;
    this.#lock(false);
    this.#showRun(run);
    this.#keep();
  }

  /** The text cannot be changed while the model writes. A button that had the focus and is hidden hands it on. */
  #lock(isLocked) {
    const { activeElement } = document;
    this.sheet.isLocked = isLocked;
    this.draw();
    if (!this.container.contains(activeElement)) return;
    if (isLocked && activeElement !== this.sheet.area) this.end.focus();
    else if (!isLocked) this.sheet.focusEnd();
  }

  #showRun({ tokens, numTokens, durationMs, finishReason, error }) {
    this.#showFault(error ?? "");
    if (tokens.length > 0) fill(this.tokens, tokenView(tokens));
    const parts = finishReason === null ? [] : [translate(ENDS[finishReason] ?? "completion.ended")];
    const count = numTokens ?? tokens.length; // nobody tells how many tokens a stopped run had
    if (count > 0) {
      const rate = formatNumber((count * 1000) / Math.max(durationMs, 1), { maximumSignificantDigits: 3 });
      parts.push(translate("completion.tokens", { count }), translate("completion.rate", { rate }));
    }
    this.state.textContent = parts.join(" · ");
  }

  #showFault(text) {
    this.fault.textContent = text;
    this.fault.hidden = text === "";
  }

  /** Shows the text before or after a run. */
  #turn(direction) {
    this.sheet.show(this.#history[direction](this.sheet.text));
    this.#changed();
    this.#forgetRun();
    this.sheet.focusEnd();
    announce(translate(direction === "undo" ? "completion.undone" : "completion.redone"));
  }

  #clear() {
    this.#history.keep(this.sheet.text);
    this.sheet.show("");
    this.#changed();
    this.#forgetRun();
    this.focus();
  }

  #forgetRun() {
    fill(this.tokens);
    this.state.textContent = "";
    this.#showFault("");
  }

  #changed() {
    this.draw();
    clearTimeout(this.#keepTimer);
    this.#keepTimer = setTimeout(() => this.#keep(), KEEP_AFTER_MS);
  }

  #keep() {
    clearTimeout(this.#keepTimer);
    if (this.sheet.text.length <= MAX_KEPT) kept.value = this.sheet.text;
  }
}

function hintText(model) {
  if (!model.completes) return translate("completion.cannot", { model: model.name });
  const { name } = model;
  const parts = [
    translate("completion.hint", { count: DEFAULT_MAX_TOKENS }),
    translate(model.fillsIn ? "completion.canFillIn" : "completion.cannotFillIn", { model: name }),
  ];
  return parts.join(" ");
}
