// The mode of the page in which two models are compared. Its address is `#/compare`; its module comes when it is first shown.

import { byId } from "../dom.js";

const ADDRESS = "#/compare";

export class CompareMode {
  #compare = null;

  /** `page` has what both columns share. */
  constructor(page) {
    this.page = page;
    byId("open-compare").addEventListener("click", () => this.isShown && this.#compare.begin());
    addEventListener("hashchange", () => this.enter());
  }

  get isShown() {
    return isComparing() && this.#compare !== null;
  }

  get isAnswering() {
    return this.#compare.isAnswering;
  }

  /** Shows the comparison, where the address names it. */
  async enter() {
    if (!isComparing() || this.#compare !== null) return;
    try {
      const { Compare } = await import("./compare.js");
      this.#compare ??= new Compare(byId("compare"), this.page);
      this.page.onState();
    } catch (error) {
      this.page.notice(error.message); // the server may be away
    }
  }

  draw() {
    byId("compare").hidden = !this.isShown;
    if (isComparing()) byId("open-compare").setAttribute("aria-current", "page");
    else byId("open-compare").removeAttribute("aria-current");
    this.#compare?.draw();
  }

  /** Returns the model of the first column, and what it would read before the next message. */
  get situation() {
    return this.#compare.situation;
  }

  send(text, attached) {
    return this.#compare.send(text, attached);
  }

  stop() {
    this.#compare.stop();
  }

  /** Gives away the conversation of this key, which goes on elsewhere. Returns null where no column has it. */
  release(key) {
    return this.#compare?.release(key) ?? null;
  }
}

function isComparing() {
  return location.hash === ADDRESS;
}
