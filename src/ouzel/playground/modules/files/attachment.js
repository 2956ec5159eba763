// A file that a person attaches: it is read in the page, or uploaded to the server. It knows how far that is, what it
// takes of the model's context, and what stands against it.

import { announce } from "../announcer.js";
import { translate } from "../texts/texts.js";
import { isForModel, kindOfUrl, usesOf, WORD_TYPE } from "./kinds.js";
import { isSoundKept, refusalOf } from "./limits.js";
import { safeName } from "./names.js";
import { partOfFile, partOfUrl } from "./parts.js";

const PURPOSE = "user_data";
const SENT_TYPES = { text: "text/plain", pdf: "application/pdf", word: WORD_TYPE }; // other files have the type that the browser knows
const MAX_COUNTED_BYTES = 8_000_000; // of a file that would be sent once more to be counted

export class Attachment {
  #controller = new AbortController();
  #ended = Promise.resolve();
  #numSteps = 0; // that are being done, or wait
  #counting = new AbortController();
  #countedFor = ""; // the model, and the use
  #onChange = () => {};

  /**
   * `contents` are as in contents.js, `uses` and `use` as in kinds.js. `server` tells whether files are stored there;
   * `counter` counts tokens.
   */
  constructor({ contents, uses, use, api, counter, server }) {
    const { file, kind, numLines = null, numPages = null, isCut = false, text = null } = contents;
    Object.assign(this, { file, kind, uses, use, api, counter, server, numLines, numPages, isCut, text });
    this.name = safeName(file.name);
    this.size = file.size;
    this.url = null; // the data URL of a file that goes along with the message
    this.transcript = null; // of a sound: a text file in an object like those of a message
    this.id = null; // of a file that was uploaded
    this.progress = 0; // the share that has been sent
    this.error = ""; // why it is not there
    this.refusal = ""; // why it cannot be sent, though it is there
    this.fault = ""; // what the server says against it
    this.numTokens = null; // that it takes of the context of the model, once that is known
    this.isEstimate = false;
    this.isReadAsText = false; // a Word file, or a PDF for a model that does not see its pages
  }

  /** The function is called whenever something about the file has changed. */
  set onChange(listener) {
    this.#onChange = listener;
  }

  /** Pictures, videos and sounds for the model go along with the message, and texts too where no files are stored. */
  get goesAlong() {
    return isForModel(this.use) && (["picture", "video", "sound"].includes(this.kind) || !this.server.keepsFiles);
  }

  get #isUploaded() {
    return !this.goesAlong || this.use === "both";
  }

  get isReady() {
    const { isSound, url, transcript } = this;
    return (!this.goesAlong || (isSound ? transcript : url) !== null) && (!this.#isUploaded || this.id !== null);
  }

  /** What goes along with the message is the text of a sound, and the sound itself where there is room for it. */
  get isSound() {
    return this.kind === "sound";
  }

  get isBusy() {
    return this.#numSteps > 0;
  }

  get isFailed() {
    return this.error !== "";
  }

  /** Says why nothing can be sent as long as this file is attached; empty where it can. */
  get obstacle() {
    return this.error || this.refusal || this.fault;
  }

  /** Resolves when the file is ready, or has failed. */
  get settled() {
    return this.#ended;
  }

  /** Takes note of the model and of the room that is left (limits.js), which may have changed. */
  consider(situation, room) {
    this.uses = usesOf(this.kind, this.name, situation);
    const isPdfRead = this.kind === "pdf" && situation.model.readsPdfs && !situation.model.seesImages;
    this.isReadAsText = this.kind === "word" || this.isSound || isPdfRead;
    const countFor = `${situation.model.name} ${this.use}`;
    if (this.#countedFor !== countFor) this.#forgetCount();
    this.refusal = refusalOf(this, situation, room);
    if (this.refusal === "" && !this.isReady && !this.isBusy && !this.isFailed) this.#begin();
    if (this.#countedFor === countFor || !isForModel(this.use) || !this.uses.includes(this.use) || !this.isReady) return;
    if (!situation.model.isInMemory) return; // to count would load it
    this.#countedFor = countFor;
    this.#count(situation.model);
  }

  setUse(use) {
    this.use = use;
    this.#onChange();
  }

  tryAgain() {
    this.#begin();
    this.#onChange();
  }

  /** Adds the file to what a message has. */
  addTo({ images, files }) {
    const { id, name, size, kind, use, url, transcript } = this;
    if (this.goesAlong) images.push(...[{ name, url }, transcript].filter((each) => each?.url));
    if (this.#isUploaded) files.push({ id, name, size, kind, use: this.goesAlong ? "python" : use });
  }

  /** Ends the upload, and deletes what has been uploaded. */
  discard() {
    this.#controller.abort();
    this.#counting.abort();
    if (this.id !== null) this.api.deleteUnwatched(pathOfFile(this.id));
  }

  #begin() {
    this.error = "";
    this.#numSteps += 1;
    this.#ended = this.#ended
      .then(() => this.#prepare())
      .catch((error) => this.#fail(error))
      .finally(() => {
        this.#numSteps -= 1;
        this.#onChange();
      });
  }

  async #prepare() {
    if (this.goesAlong && this.isSound) await this.#transcribe();
    if (this.goesAlong && (!this.isSound || isSoundKept(this))) this.url ??= await dataUrlOf(this.file, this.kind);
    if (this.#isUploaded && this.id === null) await this.#upload();
  }

  async #transcribe() {
    if (this.transcript !== null) return;
    const { transcribe } = await import("../speech/transcription.js");
    const text = await transcribe(this.api, this.file, { server: this.server, signal: this.#controller.signal, onProgress: (share) => this.#showProgress(share) });
    const name = `${this.name}.txt`;
    this.transcript = { name, url: await dataUrlOf(new File([text], name), "text") };
    this.text = { sample: text, scale: 1 };
    announce(translate("speech.isTranscribed", { name: this.name }));
  }

  #showProgress(share) {
    this.progress = share;
    this.#onChange();
  }

  async #upload() {
    this.#controller.signal.throwIfAborted();
    const form = new FormData();
    form.append("purpose", PURPOSE);
    form.append("file", this.file, this.name);
    const onProgress = (share) => this.#showProgress(share);
    const { id } = await this.api.upload("v1/files", form, { onProgress, signal: this.#controller.signal });
    this.id = id;
    if (this.#controller.signal.aborted) this.discard();
    else announce(translate("files.uploaded", { name: this.name }));
  }

  #fail(error) {
    if (error.name === "AbortError") return;
    this.error = error.message;
    announce(translate("files.failed", { name: this.name, reason: error.message }));
  }

  #forgetCount() {
    this.#counting.abort();
    this.#countedFor = "";
    Object.assign(this, { numTokens: null, isEstimate: false, fault: "" });
  }

  async #count(model) {
    const { signal } = (this.#counting = new AbortController());
    try {
      const counted = await this.#counted(model, signal);
      if (signal.aborted || counted === null) return;
      Object.assign(this, counted);
    } catch (error) {
      if (signal.aborted || ![400, 404, 413, 422].includes(error.status)) return; // the server has no time: it says more when the file is sent
      this.fault = translate("files.refused", { reason: reasonOf(error) });
    }
    this.#onChange();
  }

  async #counted(model, signal) {
    const { name, text, url, id, size } = this;
    if (text !== null) return this.counter.countText({ ...text, sample: `<document>\n${name}\n${text.sample}\n</document>` }, model, signal);
    if (this.goesAlong) return size > MAX_COUNTED_BYTES ? null : this.counter.countPart(partOfUrl({ name, url }), model, signal);
    return this.counter.countPart(partOfFile({ id, name }), model, signal);
  }
}

/** A picture or a file of a message that was sent, while the message is edited. */
export class SentAttachment {
  uses = [];
  isReady = true;
  isBusy = false;
  isFailed = false;
  obstacle = "";
  settled = Promise.resolve();

  constructor({ image = null, file = null }) {
    Object.assign(this, { image, sent: file }, file ?? image);
    this.kind = image === null ? "text" : kindOfUrl(image.url);
  }

  consider() {} // what the model does not see of it is left out

  addTo({ images, files }) {
    if (this.sent === null) images.push(this.image);
    else files.push(this.sent);
  }

  discard() {} // it is part of another branch
}

/** Returns the path of an uploaded file in the API. */
export function pathOfFile(id) {
  return `v1/files/${encodeURIComponent(id)}`;
}

/** The server begins with the name of the field, which tells people nothing. */
function reasonOf({ message, field }) {
  return field && message.startsWith(field) ? message.slice(field.length).replace(/^:? /, "") : message;
}

function dataUrlOf(file, kind) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(translate("files.unreadable")));
    const type = SENT_TYPES[kind];
    reader.readAsDataURL(type === undefined ? file : new File([file], file.name, { type }));
  });
}
