// The mode of the page in which a model goes on with a text. Its module comes when it is first shown.

import { loadPart } from "../later.js";

export class CompletionMode {
  #completion = null;
  #isLoading = false;
  #takesFocus = false; // once it has come

  /** Shows the box in `container`. */
  constructor({ api, settings, container }) {
    Object.assign(this, { api, settings, container });
  }

  get isRunning() {
    return this.#completion?.isRunning ?? false;
  }

  draw() {
    if (this.#completion !== null) this.#completion.draw();
    else if (!this.container.hidden && !this.#isLoading) this.#load();
  }

  focus() {
    this.#takesFocus = true;
    this.#completion?.focus();
  }

  stop() {
    this.#completion.stop();
  }

  async #load() {
    this.#isLoading = true;
    const part = await loadPart(() => import("./completion.js"), () => this.draw());
    this.#isLoading = false;
    if (part === null) return;
    this.#completion = new part.Completion(this);
    if (this.#takesFocus && !this.container.hidden) this.focus();
  }
}
