// A file of conversations, which a worker reads: the page stays usable meanwhile.

import { translate } from "../../texts/texts.js";
import { FILE_READER, trusted } from "../../trusted_workers.js";
import { NotUnderstood } from "./tree.js";

const MAX_BYTES = 256_000_000; // of one file: a browser's text has at most 512 million characters

export class ConversationFile {
  #worker = null;

  /** Returns how many conversations a file has (`count`), and whether it names the page's own format (`isOwn`). Throws NotUnderstood. */
  async open(file) {
    if (file.size > MAX_BYTES) throw new NotUnderstood("import.tooLarge");
    this.#worker = new Worker(trusted(FILE_READER));
    const { reason, ...found } = await this.#ask({ file });
    if (reason !== undefined) throw new NotUnderstood(reason);
    return found;
  }

  /** Iterates over lists of a few conversations, each not read yet, until the signal is aborted. */
  async *pieces(signal) {
    while (!signal.aborted) {
      const { conversations } = await this.#ask({});
      if (conversations.length === 0) return;
      yield conversations;
    }
  }

  close() {
    this.#worker?.terminate();
  }

  #ask(question) {
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }) => resolve(data);
      this.#worker.onmessageerror = () => reject(new NotUnderstood("import.tooLarge"));
      // An error without words: the script could not be loaded. With words, the worker had no memory left.
      this.#worker.onerror = (event) => {
        event.preventDefault?.();
        reject(event.message ? new NotUnderstood("import.tooLarge") : new Error(translate("page.partNotLoaded")));
      };
      this.#worker.postMessage(question);
    });
  }
}
