// Where a person writes: Enter sends, Shift and Enter begins a line, Escape stops the answer.

import { byId, isComposing } from "../dom.js";
import { Attachments } from "./attachments.js";
import { FILE_TYPES, readImages } from "./images.js";

export class Composer {
  #reading = null; // until all pictures that were chosen have been read

  /** `onSend` gets the text and the pictures, and returns whether they were taken; `notice` shows a line. */
  constructor({ onSend, onStop, notice }) {
    Object.assign(this, { onSend, onStop, notice });
    this.form = byId("composer");
    this.area = byId("prompt");
    this.attachments = new Attachments(byId("pictures"), () => this.focus());
    this.picker = byId("picture-file");
    this.picker.accept = FILE_TYPES.join(",");
    this.seesImages = false;
    this.isBusy = false;
    this.#listen();
  }

  /** Says whether an answer is being made, and whether the model reads pictures. */
  setState({ isBusy, seesImages }) {
    this.isBusy = isBusy;
    this.seesImages = seesImages;
    const isOnButton = [byId("send"), byId("stop")].includes(document.activeElement);
    byId("send").hidden = isBusy;
    byId("stop").hidden = !isBusy;
    if (isOnButton && document.activeElement.hidden) this.focus();
    byId("add-picture").hidden = !seesImages;
  }

  focus() {
    this.area.focus();
  }

  #listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.area.addEventListener("keydown", (event) => this.#press(event));
    this.area.addEventListener("input", () => this.#fit());
    this.area.addEventListener("paste", (event) => !isRichText(event.clipboardData) && this.#takeFiles(event, event.clipboardData.files));
    this.picker.addEventListener("change", () => this.#take(this.picker.files));
    byId("add-picture").addEventListener("click", () => this.picker.click());
    byId("stop").addEventListener("click", () => this.onStop());
    document.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
    document.addEventListener("drop", (event) => this.#takeFiles(event, event.dataTransfer.files));
  }

  #press(event) {
    if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
      event.preventDefault();
      this.#send();
    }
  }

  async #send() {
    await this.#reading;
    const text = this.area.value.trim();
    if (this.isBusy || (text === "" && this.attachments.images.length === 0)) return;
    if (!this.onSend(text, this.attachments.images)) return;
    this.area.value = "";
    this.attachments.images = [];
    this.#fit();
  }

  #takeFiles(event, files) {
    if (files.length === 0) return;
    event.preventDefault();
    this.#take(files);
  }

  #take(files) {
    const adding = this.#add([...files]);
    this.#reading = Promise.all([this.#reading, adding]);
  }

  async #add(files) {
    if (!this.seesImages) return this.notice("This model reads text only: it takes no pictures.", () => !this.seesImages);
    const { images, refused } = await readImages(files);
    if (refused.length > 0) this.notice(`Not a picture or PDF that can be sent: ${refused.join(", ")}`, () => false);
    this.attachments.images = [...this.attachments.images, ...images];
    this.picker.value = "";
  }

  /** The field grows with what is written, up to its CSS limit. */
  #fit() {
    this.area.style.setProperty("height", "auto");
    this.area.style.setProperty("height", `${this.area.scrollHeight + 2}px`);
  }
}

/** Spreadsheets and word processors put a picture of the text beside it: the text is meant. */
function isRichText({ types }) {
  return types.includes("text/plain") && types.includes("text/html");
}
