// The line above the field for messages: why nothing can be sent, or how much of the context the message would take.

import { announce } from "../announcer.js";
import { byId } from "../dom.js";
import { isForModel } from "../files/kinds.js";
import { shortName } from "../files/names.js";
import { translate } from "../texts/texts.js";

const LONG = 2000; // characters of a message of which the tokens are shown
const WAIT_MS = 400; // after the last key
const MAX_CHARACTERS = 200_000; // of which tokens are counted; a longer text is scaled

export class ComposerLine {
  #state = byId("composer-state");
  #send = byId("send");
  #counting = new AbortController();
  #counted = { key: "", numTokens: null };
  #isTooMuch = false;

  /** `counter` is as in token_counter.js; `onCount` is called when the server has counted a text. */
  constructor(counter, onCount) {
    Object.assign(this, { counter, onCount });
  }

  /** Shows the line for what is written and attached, behind the messages of the situation. */
  draw(situation, text, items) {
    const stopped = items.find(({ obstacle }) => obstacle !== "");
    const reason = stopped === undefined ? "" : translate("composer.obstacle", { name: shortName(stopped.name), reason: stopped.obstacle });
    this.#send.setAttribute("aria-disabled", String(reason !== ""));
    this.#send.title = reason;
    const { contextLength, isInMemory } = situation.model;
    const isWorth = isInMemory && contextLength !== null && (items.length > 0 || text.length >= Math.min(LONG, contextLength));
    if (!isWorth) this.#end();
    const sum = isWorth ? this.#sum(situation, text, items) : "";
    this.#state.classList.toggle("fault", reason !== "" || this.#isTooMuch);
    this.#state.textContent = reason || sum;
  }

  #end() {
    this.#counting.abort();
    this.#counted = { key: "", numTokens: null };
    this.#isTooMuch = false;
  }

  #sum({ model, messages }, text, items) {
    const known = messages.findLastIndex(({ figures }) => figures?.promptTokens !== null && figures !== null && !figures.isCounted);
    const { promptTokens = 0, completionTokens = 0 } = messages[known]?.figures ?? {};
    const rest = [...messages.slice(known + 1).map(({ content }) => content), text].filter(Boolean).join("\n\n");
    const numRest = this.#countOf(rest, model);
    const read = items.filter(({ use }) => isForModel(use));
    const total = promptTokens + completionTokens + numRest + read.reduce((sum, { numTokens }) => sum + (numTokens ?? 0), 0);
    this.#tellExcess(total > model.contextLength, model);
    const values = { count: total, limit: model.contextLength };
    if (this.#isTooMuch) return translate("composer.tooManyTokens", values);
    if (read.every(({ numTokens }) => numTokens !== null)) return translate("composer.aboutTokens", values);
    return total === 0 ? "" : translate("composer.atLeastTokens", values);
  }

  #tellExcess(isTooMuch, { contextLength }) {
    if (isTooMuch && !this.#isTooMuch) announce(translate("composer.moreThanContext", { limit: contextLength }));
    this.#isTooMuch = isTooMuch;
  }

  /** Returns the tokens of a text: first an estimate, and what the server counts when it is known. */
  #countOf(text, model) {
    if (text === "") return 0;
    const key = `${model.name} ${text}`;
    if (this.#counted.key === key) return this.#counted.numTokens;
    this.#counting.abort();
    const { signal } = (this.#counting = new AbortController());
    this.#counted = { key, numTokens: Math.ceil(text.length / 4) };
    const sample = text.slice(0, MAX_CHARACTERS);
    const count = async () => {
      if (signal.aborted) return;
      const { numTokens } = await this.counter.countText({ sample, scale: text.length / sample.length }, model, signal);
      if (signal.aborted) return;
      this.#counted = { key, numTokens };
      this.onCount();
    };
    setTimeout(() => count().catch(() => {}), WAIT_MS); // without the server's number the estimate stays
    return this.#counted.numTokens;
  }
}
