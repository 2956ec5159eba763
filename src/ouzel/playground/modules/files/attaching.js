// Files that a person pastes, drops or chooses become attachments. Each says itself what stands against it.

import { PYTHON } from "../server.js";
import { Attachment } from "./attachment.js";
import { likelyUse, usesOf } from "./kinds.js";
import { TokenCounter } from "./token_counter.js";

/** More files than this are not taken for one message. */
export const MAX_FILES = 50;

export class Attaching {
  constructor({ api, settings }) {
    Object.assign(this, { api, settings });
    this.counter = new TokenCounter(api);
  }

  /** Returns the attachments of files. */
  attach(files) {
    return Promise.all(files.map((file) => this.#attach(file)));
  }

  async #attach(file) {
    const { api, settings, counter } = this;
    const { model, server, values } = settings;
    const contents = await look(file).catch(() => ({ kind: "other", file }));
    const uses = usesOf(contents.kind, file.name, { model, server });
    const use = likelyUse(uses, contents.kind, file.name, values.hostedTools.includes(PYTHON));
    return new Attachment({ contents, uses, use, api, counter, server });
  }
}

/** The page loads without the code that reads files. */
async function look(file) {
  const { lookAt } = await import("./contents.js");
  return lookAt(file);
}
