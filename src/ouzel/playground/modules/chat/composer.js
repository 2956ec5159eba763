// Where a person writes: Enter sends, Shift and Enter begins a line, Escape stops the answer.

import { byId, isComposing } from "../dom.js";
import { MAX_FILES } from "../files/attaching.js";
import { filesOfDrop } from "../files/dropped.js";
import { shortName } from "../files/names.js";
import { translate } from "../texts/texts.js";
import { Attachments } from "./attachments.js";
import { ComposerLine } from "./composer_line.js";
import { DictationButton } from "./dictation_button.js";
import { LongPaste } from "./long_paste.js";

const DROP_MS = 200; // how long after its last event nothing is dragged over the page any more

export class Composer {
  #reading = null; // until it is known of all files that were chosen what they are
  #dropTimer = null;

  /**
   * `onSend` gets the text and the pictures and files, and returns whether they were taken; `onRemove` is called when a
   * file has been taken away; `notice` shows a line, and `attaching` makes attachments of files. `situation` returns the
   * model, the server, the messages before, and whether the server runs tools.
   */
  constructor({ onSend, onStop, onRemove, notice, attaching, situation }) {
    Object.assign(this, { onSend, onStop, onRemove, notice, attaching, situation });
    this.form = byId("composer");
    this.area = byId("prompt");
    this.attachments = new Attachments(byId("attachments"), () => this.#takeAway(), () => this.#consider());
    this.pickers = [byId("file-picker"), byId("camera")];
    this.line = new ComposerLine(attaching.counter, () => this.#consider());
    this.longPaste = new LongPaste(this.area, (file) => this.#take([file]));
    this.dictation = new DictationButton({ area: this.area, api: attaching.api, notice, onFile: (file) => this.#take([file]) });
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
    this.#consider();
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
    this.area.addEventListener("paste", (event) => this.#paste(event));
    for (const picker of this.pickers) picker.addEventListener("change", () => this.#take(picker.files));
    byId("attach").addEventListener("click", () => byId("file-picker").click());
    byId("photograph").addEventListener("click", () => byId("camera").click());
    byId("stop").addEventListener("click", () => this.onStop());
    document.addEventListener("dragover", (event) => this.#dragOver(event));
    document.addEventListener("drop", (event) => this.#drop(event));
    // Files that were never sent belong to no conversation that could be deleted.
    addEventListener("pagehide", ({ persisted }) => !persisted && this.attachments.items.forEach((item) => item.discard()));
  }

  #takeAway() {
    this.onRemove();
    this.focus();
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
    const hasFailed = () => this.attachments.items.some(({ isFailed }) => isFailed);
    if (hasFailed()) return this.notice(translate("composer.fileFailed"), hasFailed);
    const stopped = items.find(({ obstacle }) => obstacle !== "");
    if (stopped !== undefined) return this.notice(obstacleText(stopped), () => this.attachments.items.includes(stopped) && stopped.obstacle !== "");
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

  #paste(event) {
    const { clipboardData: transfer } = event;
    if (transfer.files.length === 0 || isRichText(transfer)) return this.longPaste.take(transfer);
    event.preventDefault();
    this.#take(transfer.files);
  }

  #drop(event) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    this.#take(filesOfDrop(event.dataTransfer, MAX_FILES));
  }

  /** `files` may be a promise. Files that are taken later stand behind these, however long each is read. */
  #take(files) {
    const taken = files instanceof Promise ? files : [...files];
    this.#reading = this.#add(taken, this.#reading).catch((error) => this.notice(error.message, () => false));
  }

  async #add(taken, before) {
    for (const picker of this.pickers) picker.value = "";
    const files = await taken;
    await before;
    const numFree = Math.max(0, MAX_FILES - this.attachments.items.length);
    if (files.length > numFree) this.notice(translate("composer.tooManyFiles", { count: MAX_FILES }), () => false);
    this.attachments.add(await this.attaching.attach(files.slice(0, numFree)));
  }

  /** Shows what has changed about the files and the model. */
  #consider() {
    const situation = this.situation();
    this.attachments.consider(situation);
    this.line.draw(situation, this.area.value, this.attachments.items);
    this.longPaste.draw();
    byId("photograph").hidden = !situation.model.seesImages;
    this.dictation.draw(situation.server, !this.form.hidden);
  }

  /** The field grows with what is written, up to its CSS limit. */
  #fit() {
    this.area.style.setProperty("height", "auto");
    this.area.style.setProperty("height", `${this.area.scrollHeight + 2}px`);
    this.#consider();
  }
}

/** Says why nothing is sent. */
function obstacleText({ name, obstacle }) {
  return translate("composer.nothingSent", { name: shortName(name), reason: obstacle });
}

/** Spreadsheets and word processors put a picture of the text beside it: the text is meant. */
function isRichText({ types }) {
  return types.includes("text/plain") && types.includes("text/html");
}
