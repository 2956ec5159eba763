// Asks for /metrics again and again, while somebody sees the page.

import { Api, ROOT } from "../api.js";
import { translate } from "../texts/texts.js";
import { readingOf } from "./reading.js";

const EVERY_MS = 2000;
const TIMEOUT_MS = 10_000;

/** What the last answer came to. */
export const States = {
  reached: "reached",
  needsKey: "needsKey",
  hasNone: "hasNone", // the server answers, but not with figures
  unreached: "unreached",
};

export class Poller {
  #timer = null;
  #isAsking = false;

  /** `onReading` gets each reading, `onState` the state after every question and what is the trouble, if there is one. */
  constructor({ onReading, onState }) {
    this.onReading = onReading;
    this.onState = onState;
  }

  start() {
    document.addEventListener("visibilitychange", () => this.askNow());
    this.askNow();
  }

  async askNow() {
    clearTimeout(this.#timer);
    if (this.#isAsking || document.visibilityState !== "visible") return;
    this.#isAsking = true;
    const { state, trouble } = await this.#ask();
    this.#isAsking = false;
    this.onState(state, trouble);
    if (state !== States.needsKey) this.#timer = setTimeout(() => this.askNow(), EVERY_MS);
  }

  async #ask() {
    const key = Api.key;
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    try {
      const response = await fetch(new URL("metrics", ROOT), { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (response.status === 401) return { state: States.needsKey, trouble: key ? translate("figures.wrongKey") : "" };
      if (!response.ok) return { state: States.hasNone, trouble: translate("figures.answersWith", { status: String(response.status) }) };
      return this.#take(await response.text());
    } catch {
      return { state: States.unreached, trouble: "" };
    }
  }

  #take(text) {
    try {
      this.onReading(readingOf(text));
      return { state: States.reached, trouble: "" };
    } catch (error) {
      return { state: States.hasNone, trouble: error.message };
    }
  }
}
