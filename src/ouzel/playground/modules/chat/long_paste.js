// A very long text that was pasted can become a file, by a button: the field for messages stays short then.

import { byId } from "../dom.js";
import { translate } from "../texts/texts.js";

const MIN_LENGTH = 4000; // characters

export class LongPaste {
  #text = ""; // that was pasted last

  /** `area` is the field for messages; `onFile` gets the text as a file. */
  constructor(area, onFile) {
    Object.assign(this, { area, onFile, button: byId("attach-paste") });
    this.button.addEventListener("click", () => this.#attach());
  }

  take(transfer) {
    const text = transfer.getData("text/plain").replace(/\r\n?/g, "\n"); // as fields write the ends of lines
    if (text.length >= MIN_LENGTH) this.#text = text;
  }

  /** Shows the button as long as the text stands in the field. */
  draw() {
    if (!this.area.value.includes(this.#text)) this.#text = "";
    this.button.hidden = this.#text === "";
  }

  #attach() {
    const { area } = this;
    const file = new File([this.#text], translate("composer.pastedName"), { type: "text/plain" });
    const start = area.value.indexOf(this.#text);
    area.setRangeText("", start, start + this.#text.length, "end");
    this.#text = "";
    area.focus();
    this.onFile(file);
    area.dispatchEvent(new Event("input"));
  }
}
