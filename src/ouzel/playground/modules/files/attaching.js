// Files that a person pastes, drops or chooses become attachments, where the model or the server can do something with them.

import { PYTHON } from "../server.js";
import { translate } from "../texts/texts.js";
import { Attachment } from "./attachment.js";
import { kindOf, likelyUse, usesOf } from "./kinds.js";
import { shortName } from "./names.js";

export class Attaching {
  constructor({ api, settings }) {
    Object.assign(this, { api, settings });
  }

  /** Returns the attachments of files, and the names of those that nothing can be done with. */
  async attach(files) {
    const found = await Promise.all(files.map((file) => this.#attach(file)));
    const refused = files.filter((_, index) => found[index] === null).map(({ name }) => shortName(name));
    return { attached: found.filter((each) => each !== null), refused };
  }

  /** Returns a line for people about files that nothing can be done with. */
  explain(refused) {
    const { model, server } = this.settings;
    const kinds = [translate("files.texts")];
    if (model.seesImages) kinds.push(translate("files.pictures"));
    if (model.readsPdfs) kinds.push(translate("files.pdfs"));
    if (server.runsPython) kinds.push(translate("files.filesForPython"));
    return translate("files.notUsable", { names: refused.join(", "), kinds: kinds.join(", ") });
  }

  async #attach(file) {
    const { api, settings } = this;
    const { model, server } = settings;
    const kind = await kindOf(file).catch(() => null);
    const uses = kind === null ? [] : usesOf(kind, file.name, { model, server });
    if (uses.length === 0) return null;
    const use = likelyUse(uses, kind, file.name, settings.values.hostedTools.includes(PYTHON));
    return new Attachment({ file, kind, uses, use, api, server });
  }
}
