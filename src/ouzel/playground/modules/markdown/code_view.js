// A block of code: its language, buttons to copy and to wrap it, and its lines, each coloured once.

import { button, copyFrom, element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { withoutTowers } from "./bounded_text.js";
import { Highlighter } from "./highlight/highlighter.js";
import { shownForms } from "./shown_forms.js";

const MAX_NAME = 60; // characters of a language

export class CodeView {
  #code = element("code");
  #highlighter;
  #lines = [];
  #numSettled = 0;
  #forms; // buttons that show what the code makes
  #state = null; // of the highlighter, in front of the first line that is not settled

  constructor({ language }) {
    this.#highlighter = new Highlighter(language);
    const name = language.slice(0, MAX_NAME);
    const label = name === "" ? translate("markdown.code") : name;
    const copy = button(translate("markdown.copy"), () => copyFrom(copy, this.#lines.join("\n")));
    const wrap = button(translate("markdown.wrap"), () => wrap.setAttribute("aria-pressed", String(this.element.classList.toggle("wrapped"))));
    wrap.setAttribute("aria-pressed", "false");
    this.#forms = shownForms(language, { code: () => this.#lines.join("\n"), place: (node) => this.element.append(node) });
    const head = element("div", { class: "code-head" }, element("span", { class: "code-language", text: label }), ...this.#forms, wrap, copy);
    const box = element("pre", { tabindex: "0", role: "group", "aria-label": name === "" ? label : translate("markdown.codeIn", { language: name }) }, this.#code);
    this.element = element("div", { class: "code-block" }, head, box);
    this.update = this.update.bind(this);
  }

  /** Lines never change; the last one of a block that is open may be one that is still being written. */
  update({ lines, isTentative }) {
    this.#lines = lines;
    for (const form of this.#forms) form.hidden = isTentative;
    while (this.#code.childElementCount > this.#numSettled) this.#code.lastChild.remove();
    const numWhole = isTentative ? lines.length - 1 : lines.length;
    for (; this.#numSettled < numWhole; this.#numSettled += 1) this.#state = this.#add(lines[this.#numSettled]);
    if (lines.length > this.#numSettled) this.#add(lines[this.#numSettled]);
  }

  /** Returns the highlighter's state behind the line. */
  #add(line) {
    const { tokens, state } = this.#highlighter.read(withoutTowers(line), this.#state);
    const node = element("span", { class: "line" });
    for (const { kind, text } of tokens) node.append(kind === "" ? text : element("span", { class: `token-${kind}`, text }));
    node.append("\n");
    this.#code.append(node);
    return state;
  }
}
