// A file as a small card: its name, its size, and how far it is. Cards of files that are attached have controls.

import { button, element } from "../dom.js";
import { formatNumber, translate } from "../texts/texts.js";
import { isPicture, USES } from "./kinds.js";
import { endingOf, shortName, sizeText } from "./names.js";

/** Shows an attachment, and what becomes of it. */
export class Chip {
  #state = element("span", { class: "file-state" });
  #sign;
  #progress;
  #retry;
  #choice = null;

  constructor(item, { onRemove }) {
    this.item = item;
    const name = shortName(item.name);
    this.#sign = element("span", { class: "file-sign", "aria-hidden": "true", text: endingOf(item.name) || translate("files.sign") });
    this.#progress = element("progress", { max: 1, "aria-label": translate("files.upload", { name }) });
    this.#retry = button(translate("files.tryAgain", { name }), () => item.tryAgain(), { icon: "↻", class: "retry" });
    const remove = button(translate("files.remove", { name }), onRemove, { icon: "×", class: "remove" });
    const text = element("span", { class: "file-text" }, nameView(item.name), this.#state, this.#progress);
    if (item.uses.length > 1) this.#choice = this.#useChoice(name);
    this.element = element("li", { class: "file" }, this.#sign, text, this.#choice, this.#retry, remove);
    item.onChange = () => this.draw();
    this.draw();
  }

  draw() {
    const { item } = this;
    const { isReady, isFailed, uses, use, size, progress, error, url } = item;
    const isBusy = !isReady && !isFailed;
    this.element.classList.toggle("failed", isFailed);
    this.element.setAttribute("aria-busy", String(isBusy));
    const said = isBusy ? percent(progress ?? 0) : uses.length === 1 && use !== "model" ? USES[use] : "";
    this.#state.textContent = isFailed ? error : [sizeText(size ?? null), said].filter(Boolean).join(" · ");
    this.#progress.hidden = !isBusy;
    this.#progress.value = progress ?? 0;
    this.#retry.hidden = !isFailed;
    if (this.#choice !== null) Object.assign(this.#choice, { value: use, hidden: isFailed });
    if (url && isPicture(url) && this.#sign.localName !== "img") this.#showPicture(url);
  }

  #showPicture(url) {
    const picture = element("img", { src: url, alt: "" });
    this.#sign.replaceWith(picture);
    this.#sign = picture;
  }

  #useChoice(name) {
    const { item } = this;
    const options = item.uses.map((use) => element("option", { value: use, text: USES[use] }));
    const select = element("select", { "aria-label": translate("files.use", { name }) }, ...options);
    select.addEventListener("change", () => item.setUse(select.value));
    return select;
  }
}

/** Returns the card of a file that was sent. `onDelete` is called when a person wants it gone from the server. */
export function sentFileView(file, onDelete) {
  const { name, size, use, isDeleted } = file;
  const said = isDeleted ? translate("files.deleted") : use === "model" ? "" : USES[use];
  const state = element("span", { class: "file-state", text: [sizeText(size ?? null), said].filter(Boolean).join(" · ") });
  const sign = element("span", { class: "file-sign", "aria-hidden": "true", text: endingOf(name) || translate("files.sign") });
  const remove = isDeleted ? null : button(translate("files.deleteFromServer", { name: shortName(name) }), onDelete, { icon: "×", class: "remove" });
  return element("li", { class: `file${isDeleted ? " gone" : ""}` }, sign, element("span", { class: "file-text" }, nameView(name), state), remove);
}

/** Returns a picture, or the name of another file that goes along with a message. */
export function attachmentView({ name, url }, properties = {}) {
  if (isPicture(url)) return element("img", { src: url, alt: name, title: name, ...properties });
  return nameView(name);
}

function percent(share) {
  return translate("files.percent", { number: formatNumber(Math.floor(share * 100)) });
}

/** The direction of a name's own letters stays in the name. */
function nameView(name) {
  return element("bdi", { class: "file-name", title: name.slice(0, 300), text: shortName(name) });
}
