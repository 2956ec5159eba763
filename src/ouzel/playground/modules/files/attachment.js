// A file that a person attaches: it is read in the page, or uploaded to the server. It knows how far that is.

import { announce } from "../announcer.js";
import { translate } from "../texts/texts.js";
import { isPicture } from "./kinds.js";
import { safeName, sizeText } from "./names.js";

const PURPOSE = "user_data";

export class Attachment {
  #controller = new AbortController();
  #ended = Promise.resolve();
  #onChange = () => {};

  /** `kind` and `uses` are as in kinds.js. `server` tells whether files are stored there, and how long they may be. */
  constructor({ file, kind, uses, use, api, server }) {
    Object.assign(this, { file, kind, uses, use, api, server });
    this.name = safeName(file.name);
    this.size = file.size;
    this.url = null; // the data URL of a file that goes along with the message
    this.id = null; // of a file that was uploaded
    this.progress = 0; // the share that has been sent
    this.error = "";
    this.#begin();
  }

  /** The function is called whenever something about the file has changed. */
  set onChange(listener) {
    this.#onChange = listener;
  }

  /** Pictures that the model sees go along with the message, and texts too where no files are stored. */
  get #goesAlong() {
    return this.use === "model" && (this.kind === "picture" || !this.server.keepsFiles);
  }

  get isReady() {
    return this.#goesAlong ? this.url !== null : this.id !== null;
  }

  get isFailed() {
    return this.error !== "";
  }

  /** Resolves when the file is ready, or has failed. */
  get settled() {
    return this.#ended;
  }

  setUse(use) {
    this.use = use;
    if (!this.isReady) this.#begin();
    this.#onChange();
  }

  tryAgain() {
    this.#begin();
    this.#onChange();
  }

  /** Adds the file to what a message has. */
  addTo({ images, files }) {
    const { id, name, size, use, url } = this;
    if (this.#goesAlong) images.push({ name, url });
    else files.push({ id, name, size, use });
  }

  /** Ends the upload, and deletes what has been uploaded. */
  discard() {
    this.#controller.abort();
    if (this.id !== null) this.api.deleteUnwatched(pathOfFile(this.id));
  }

  #begin() {
    this.error = "";
    this.#ended = this.#ended.then(() => this.#prepare()).catch((error) => this.#fail(error));
  }

  async #prepare() {
    if (this.isReady) return;
    if (this.#goesAlong) this.url = await dataUrlOf(this.file, this.kind);
    else await this.#upload();
    this.#onChange();
  }

  async #upload() {
    this.#controller.signal.throwIfAborted();
    const { maxFileBytes } = this.server;
    if (this.size > maxFileBytes) throw new Error(translate("files.tooLarge", { limit: sizeText(maxFileBytes) }));
    const form = new FormData();
    form.append("purpose", PURPOSE);
    form.append("file", this.file, this.name);
    const onProgress = (share) => {
      this.progress = share;
      this.#onChange();
    };
    const { id } = await this.api.upload("v1/files", form, { onProgress, signal: this.#controller.signal });
    this.id = id;
    if (this.#controller.signal.aborted) this.discard();
    else announce(translate("files.uploaded", { name: this.name }));
  }

  #fail(error) {
    if (error.name === "AbortError") return;
    this.error = error.message;
    announce(translate("files.failed", { name: this.name, reason: error.message }));
    this.#onChange();
  }
}

/** A picture or a file of a message that was sent, while the message is edited. */
export class SentAttachment {
  uses = [];
  isReady = true;
  isFailed = false;
  settled = Promise.resolve();

  constructor({ image = null, file = null }) {
    Object.assign(this, { image, sent: file }, file ?? image);
    this.kind = image !== null && isPicture(image.url) ? "picture" : "text";
  }

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

function dataUrlOf(file, kind) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(translate("files.unreadable")));
    reader.readAsDataURL(kind === "text" ? new File([file], file.name, { type: "text/plain" }) : file);
  });
}
