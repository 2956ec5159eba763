// The button beside the field for messages that writes what a person says. What records is loaded when it is first pressed.

import { byId } from "../dom.js";
import { loadPart } from "../later.js";
import { translate } from "../texts/texts.js";

export class DictationButton {
  #button = byId("dictate");
  #dictation = null;

  /** `area` is the field for messages, `notice` shows a line, and `onFile` gets a recording as a file. */
  constructor({ area, api, notice, onFile }) {
    Object.assign(this, { area, api, notice, onFile });
    if (!isSecureContext) this.#button.title = translate("speech.insecure");
    this.#button.addEventListener("click", () => this.#press());
  }

  /** Shows the button where the server has a model for speech; elsewhere nothing is recorded any more. */
  draw(server, isShown) {
    this.server = server;
    this.#button.hidden = server.transcriber === null;
    if (this.#button.hidden || !isShown) this.#dictation?.discard();
  }

  async #press() {
    const part = await loadPart(() => import("../speech/dictation.js"), () => this.#press());
    if (part === null) return;
    const { area, api, server, notice, onFile } = this;
    this.#dictation ??= new part.Dictation({ button: this.#button, area, place: byId("composer-line"), api, server, notice, onFile });
    this.#dictation.press();
  }
}
