// The text of one element. What can no longer change its meaning is settled: its nodes stay, and it is never read again.

import { element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { textNodes, withoutTowers } from "./bounded_text.js";
import { formulaView } from "./formulas/formula_view.js";
import { parseInline, settledEnd } from "./inline.js";

const MAX_GUESSED = 400; // a mark further back than that is shown as it stands until something closes it
// What a text that is still being written may end with, and may not stay as it looks.
const DANGLING = /(?:[*_~`$\\]+|!?\[|!|&[#\w]{0,10}|【\d{0,6}|\[\^[^\s[\]]{0,20}|\s)$/;
const MAX_DANGLING = 64;

export class InlineView {
  #settled = "";
  #shown = null;
  #tail = [];

  constructor(parent) {
    this.parent = parent;
  }

  /** Shows a text. `isFinal`: nothing more comes. Else what is begun at its end is shown as if it were closed. */
  update(text, isFinal) {
    if (!isFinal && text === this.#shown) return;
    this.#shown = isFinal ? null : text;
    for (const node of this.#tail) node.remove();
    this.#tail = [];
    if (!text.startsWith(this.#settled)) this.#clear();
    if (isFinal) this.#settle(text.trimEnd());
    else this.#showOpen(text);
  }

  #showOpen(text) {
    const rest = withoutDangling(text.slice(this.#settled.length));
    const parsed = parseInline(rest, this.#before);
    const settled = settledEnd(rest, parsed);
    if (settled > 0) {
      this.#settle(this.#settled + rest.slice(0, settled));
      return this.#showOpen(text);
    }
    guessEnds(rest, parsed);
    const fragment = document.createDocumentFragment();
    build(parsed.items, fragment);
    this.#tail = [...fragment.childNodes];
    this.parent.append(fragment);
  }

  #settle(text) {
    build(parseInline(text.slice(this.#settled.length), this.#before).items, this.parent);
    this.#settled = text;
  }

  get #before() {
    return this.#settled.slice(-1);
  }

  #clear() {
    this.parent.replaceChildren();
    this.#settled = "";
  }
}

/** Adds the nodes of a text that is whole. */
export function buildInline(text, parent) {
  build(parseInline(text).items, parent);
}

/** Makes of marks that nothing closes yet what they would be if the text ended with what closes them. */
function guessEnds(source, parsed) {
  const isNear = ({ at }) => source.length - at <= MAX_GUESSED;
  for (const mark of parsed.openMarks.filter((each) => isNear(each) && !each.canClose)) {
    if (mark.count >= 2) mark.opens.unshift({ tag: mark.character === "~" ? "del" : "strong" });
    if (mark.count % 2 === 1) mark.opens.unshift({ tag: "em" });
    mark.count = 0;
  }
  const index = parsed.items.findIndex((item) => item.opensCode || item.unfinishedAt !== undefined);
  const half = parsed.items[index];
  if (half === undefined || !isNear(half)) return;
  if (half.opensCode) parsed.items.splice(index, Infinity, { element: "code", text: source.slice(half.end) });
  else {
    half.opens = [{ tag: "a", href: null }];
    parsed.items.length = half.unfinishedAt;
  }
}

function withoutDangling(text) {
  const cut = Math.max(text.length - MAX_DANGLING, 0);
  return text.slice(0, cut) + text.slice(cut).replace(DANGLING, "");
}

/** Appends the nodes of items to a parent. Text that follows text goes into the same node. */
function build(items, parent) {
  const path = [parent];
  let text = ""; // which has no node yet: to add to a node again and again takes long where it is long
  const endText = () => {
    addText(path.at(-1), text);
    text = "";
  };
  for (const item of items) {
    if (item.element || item.closes?.length > 0) endText();
    for (const _ of item.closes ?? []) path.pop();
    if (item.element) path.at(-1).append(nodeOf(item, isInLink(path, parent)));
    else if (!isLinkOpener(item)) text += textOf(item);
    for (const opened of item.opens ?? []) {
      endText();
      const node = opened.tag === "a" ? link(opened, isInLink(path, parent)) : element(opened.tag);
      path.at(-1).append(node);
      path.push(node);
    }
  }
  endText();
}

function textOf({ text, character, count }) {
  return character === undefined ? (text ?? "") : character.repeat(count);
}

function isLinkOpener({ opens, isActive }) {
  return isActive !== undefined && opens !== undefined;
}

function addText(parent, text) {
  const [first, ...others] = textNodes(text);
  if (first === undefined) return;
  if (typeof first === "string" && parent.lastChild?.nodeType === Node.TEXT_NODE) parent.lastChild.appendData(first);
  else parent.append(first);
  parent.append(...others);
}

function nodeOf(item, isInside) {
  if (item.element === "br") return element("br");
  if (item.element === "code") return element("code", { text: withoutTowers(item.text) });
  if (item.element === "maths") return formulaView(item.text, item.isDisplayed);
  if (item.element === "note") return element("span", { class: "note-reference", data: { note: item.label }, text: item.text });
  if (item.element === "marker") return element("span", { class: "marker", text: item.text });
  const node = link({ href: item.href, title: "", isImage: false }, isInside);
  node.append(item.text);
  return node;
}

function isInLink(path, parent) {
  return path.slice(path.indexOf(parent) + 1).some((node) => node.localName === "a");
}

/** Returns the element of a link; within another one, and where the address is not known, it leads nowhere. */
function link({ href, title, isImage }, isInside) {
  if (isInside || href === null) return element("span", { class: href === null ? "unfinished-link" : isImage ? "image-link" : null, "data-label": isImage ? translate("markdown.picture") : null });
  return element("a", {
    href,
    class: isImage ? "image-link" : null,
    "data-label": isImage ? translate("markdown.picture") : null,
    target: "_blank",
    rel: "noopener noreferrer nofollow",
    title: title ? `${title}\n${href}` : href,
  });
}
