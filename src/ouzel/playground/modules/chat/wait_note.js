// The wait for another try of a request: how long it still takes, and two ways to end it. It is told to screen readers
// once (running.js), and not with each second.

import { button, element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { isBusy } from "./tries.js";

const EVERY_MS = 250;

export class WaitNote {
  #text = element("span", { class: "wait-text" });
  #timer;

  constructor(wait, onStop) {
    this.wait = wait;
    const now = button(translate("answer.tryNow"), () => wait.skip());
    const stop = button(translate("composer.stop"), onStop);
    this.element = element("div", { class: "note wait" }, this.#text, now, stop);
    this.#timer = setInterval(() => this.#draw(), EVERY_MS);
    wait.over.catch(() => {}).finally(() => this.close());
    this.#draw();
  }

  get hasFocus() {
    return this.element.contains(document.activeElement);
  }

  close() {
    clearInterval(this.#timer);
  }

  #draw() {
    const { error, seconds } = this.wait;
    const text = translate(isBusy(error) ? "answer.busyUntil" : "answer.awayUntil", { seconds });
    if (this.#text.textContent !== text) this.#text.textContent = text;
  }
}
