// A file as a small card: its name, its size, what it takes of the context, how far it is, and what stands against it.

import { button, element, fill } from "../dom.js";
import { formatNumber, translate } from "../texts/texts.js";
import { isForModel, isPicture, USES } from "./kinds.js";
import { endingOf, rounded, shortName, sizeText, tokensText } from "./names.js";

/** Shows an attachment. Its controls take it away, choose its use, and try its upload again. */
export class Chip {
  #state = element("span", { class: "file-state" });
  #sign;
  #progress;
  #retry;
  #choice;
  #soundUrl = null; // of a player

  constructor(item, { onRemove }) {
    this.item = item;
    const name = shortName(item.name);
    this.#sign = element("span", { class: "file-sign", "aria-hidden": "true", text: endingOf(item.name) || translate("files.sign") });
    this.#progress = element("progress", { max: 1, "aria-label": translate("files.upload", { name }) });
    this.#retry = button(translate("files.tryAgain", { name }), () => item.tryAgain(), { icon: "↻", class: "retry" });
    this.#choice = element("select", { "aria-label": translate("files.use", { name }) });
    this.#choice.addEventListener("change", () => item.setUse(this.#choice.value));
    const remove = button(translate("files.remove", { name }), onRemove, { icon: "×", class: "remove" });
    const text = element("span", { class: "file-text" }, nameView(item.name), this.#state, this.#progress);
    if (item.kind === "sound") this.#addPlayer(text);
    this.element = element("li", { class: "file" }, this.#sign, text, this.#choice, this.#retry, remove);
    this.draw();
  }

  draw() {
    const { kind, isBusy, isFailed, obstacle, progress, url } = this.item;
    this.element.classList.toggle("failed", obstacle !== "");
    this.element.setAttribute("aria-busy", String(isBusy));
    this.#state.textContent = obstacle || this.#facts().join(" · ");
    this.#progress.hidden = !isBusy;
    if (kind === "sound" && progress === 1) this.#progress.removeAttribute("value"); // nobody knows how long it takes
    else this.#progress.value = progress ?? 0;
    this.#retry.hidden = !isFailed;
    this.#drawChoice();
    if (url && isPicture(url) && this.#sign.localName !== "img") this.#showPicture(url);
  }

  #facts() {
    const { item } = this;
    const facts = [sizeText(item.size ?? null), linesText(item), pagesText(item), readingText(item)];
    if (item.isBusy) facts.push(item.kind === "sound" ? translate("speech.transcribing") : percent(item.progress ?? 0));
    else facts.push(tokensText(item), item.uses.length === 1 && item.use !== "model" ? USES[item.use] : "");
    return facts.filter(Boolean);
  }

  /** The choice has the use that is chosen, also where the present model does not read the file. */
  #drawChoice() {
    const { uses, use, isFailed } = this.item;
    const shown = Object.keys(USES).filter((each) => uses.includes(each) || each === use);
    const isOld = [...this.#choice.options].map(({ value }) => value).join() !== shown.join();
    if (isOld) fill(this.#choice, ...shown.map((each) => element("option", { value: each, text: USES[each] })));
    Object.assign(this.#choice, { value: use, hidden: isFailed || uses.length === 0 || shown.length < 2 });
  }

  /** Frees what the player has taken. */
  close() {
    if (this.#soundUrl !== null) URL.revokeObjectURL(this.#soundUrl);
  }

  async #addPlayer(place) {
    const { item } = this;
    if (item.file !== undefined) this.#soundUrl = URL.createObjectURL(item.file);
    const part = await import("./sent_view.js").catch(() => null); // the sound is sent without its player, too
    if (part !== null) place.append(part.soundView(item.name, this.#soundUrl ?? item.url));
  }

  #showPicture(url) {
    const picture = element("img", { src: url, alt: "" });
    this.#sign.replaceWith(picture);
    this.#sign = picture;
  }
}

function linesText({ numLines, isCut }) {
  if (numLines === null || numLines === undefined) return "";
  return isCut ? translate("files.aboutLines", { count: rounded(numLines) }) : translate("files.lines", { count: numLines });
}

function pagesText({ numPages }) {
  return numPages ? translate("files.pages", { count: numPages }) : "";
}

/** Says that the model gets the text of a Word file, of a sound, or of a PDF whose pages it does not see. */
function readingText({ isReadAsText, use }) {
  return isReadAsText && isForModel(use) ? translate("files.textIsSent") : "";
}

function percent(share) {
  return translate("files.percent", { number: formatNumber(Math.floor(share * 100)) });
}

/** The direction of a name's own letters stays in the name. */
export function nameView(name) {
  return element("bdi", { class: "file-name", title: name.slice(0, 300), text: shortName(name) });
}
