// Where a person writes: Enter sends, Shift and Enter begins a line, Escape stops the answer.

import { byId, isComposing } from "../dom.js";
import { translate } from "../texts/texts.js";
import { Attachments } from "./attachments.js";

const DROP_MS = 200; // how long after its last event nothing is dragged over the page any more

export class Composer {
  #reading = null; // until it is known of all files that were chosen what they are
  #dropTimer = null;

  /**
   * `onSend` gets the text and the pictures and files, and returns whether they were taken; `notice` shows a line, and
   * `attaching` makes attachments of files.
   */
  constructor({ onSend, onStop, notice, attaching }) {
    Object.assign(this, { onSend, onStop, notice, attaching });
    this.form = byId("composer");
    this.area = byId("prompt");
    this.attachments = new Attachments(byId("attachments"), () => this.focus());
    this.picker = byId("file-picker");
    this.isBusy = false;
    this.#listen();
  }

  /** Says whether an answer is being made. */
  setState({ isBusy }) {
    this.isBusy = isBusy;
    const isOnButton = [byId("send"), byId("stop")].includes(document.activeElement);
    byId("send").hidden = isBusy;
    byId("stop").hidden = !isBusy;
    if (isOnButton && document.activeElement.hidden) this.focus();
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
    byId("attach").addEventListener("click", () => this.picker.click());
    byId("stop").addEventListener("click", () => this.onStop());
    document.addEventListener("dragover", (event) => this.#dragOver(event));
    document.addEventListener("drop", (event) => this.#takeFiles(event, event.dataTransfer.files));
    // Files that were never sent belong to no conversation that could be deleted.
    addEventListener("pagehide", ({ persisted }) => !persisted && this.attachments.items.forEach((item) => item.discard()));
  }

  #press(event) {
    if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
      event.preventDefault();
      this.#send();
    }
  }

  async #send() {
    await this.#reading;
    await this.attachments.settle();
    const text = this.area.value.trim();
    const { items } = this.attachments;
    if (this.isBusy || (text === "" && items.length === 0)) return;
    const hasFailed = () => items.some(({ isFailed }) => isFailed);
    if (hasFailed()) return this.notice(translate("composer.fileFailed"), hasFailed);
    if (!this.onSend(text, this.attachments.sent)) return;
    this.area.value = "";
    this.attachments.take();
    this.#fit();
  }

  #dragOver(event) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    this.form.classList.add("dropping");
    clearTimeout(this.#dropTimer);
    this.#dropTimer = setTimeout(() => this.form.classList.remove("dropping"), DROP_MS);
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
    this.picker.value = "";
    const { attached, refused } = await this.attaching.attach(files);
    if (refused.length > 0) this.notice(this.attaching.explain(refused), () => false);
    this.attachments.add(attached);
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
