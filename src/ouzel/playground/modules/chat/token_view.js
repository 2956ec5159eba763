// An answer as its tokens: the colour says how probable each was, and whoever points at one or walks to it with the
// arrow keys sees what else might have stood there.

import { element } from "../dom.js";
import { formatNumber, translate } from "../texts/texts.js";

const PER_FRAME = 500; // tokens that are drawn at a time
const LEVELS = 5;
const GAP_PX = 4;

/** Returns the element, and draws the tokens into it some at a time. */
export function tokenView(tokens) {
  const card = element("div", { class: "token-card", role: "status", hidden: true });
  const list = element("div", { class: "tokens", dir: "auto", tabindex: 0, role: "group", "aria-label": translate("tokens.walk") });
  const walk = new Walk(list, card, tokens);
  list.addEventListener("pointerover", (event) => walk.show(event.target));
  list.addEventListener("pointerleave", () => walk.hide());
  list.addEventListener("keydown", (event) => walk.press(event));
  list.addEventListener("blur", () => walk.hide());
  drawFrom(0, tokens, list);
  return element("div", { class: "token-view" }, list, card);
}

/** Returns a text in which characters that cannot be seen are signs. */
export function visible(text) {
  return text.replaceAll(" ", "·").replaceAll("\n", "⏎").replaceAll("\t", "⇥");
}

function drawFrom(start, tokens, list) {
  const spans = tokens.slice(start, start + PER_FRAME).map((token, index) => tokenSpan(token, start + index));
  list.append(...spans);
  if (start + PER_FRAME < tokens.length) requestAnimationFrame(() => drawFrom(start + PER_FRAME, tokens, list));
}

function tokenSpan({ text, logprob }, index) {
  const level = Math.min(LEVELS - 1, Math.floor(Math.exp(logprob) * LEVELS));
  return element("span", { class: `token level-${level}`, data: { index }, text: text.replaceAll("\n", "⏎\n") });
}

class Walk {
  #current = null;

  constructor(list, card, tokens) {
    this.list = list;
    this.card = card;
    this.tokens = tokens;
  }

  show(target) {
    const span = target.closest?.(".token");
    if (!span) return;
    this.#current?.classList.remove("current");
    this.#current = span;
    span.classList.add("current");
    this.card.replaceChildren(...cardOf(this.tokens[Number(span.dataset.index)]));
    this.card.hidden = false;
    this.#place(span);
  }

  hide() {
    this.#current?.classList.remove("current");
    this.card.hidden = true;
  }

  press(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = this.#current === null ? 0 : Number(this.#current.dataset.index) + step;
    const span = this.list.children[next];
    if (span) this.show(span);
  }

  #place(span) {
    const [around, at] = [this.list.parentElement.getBoundingClientRect(), span.getBoundingClientRect()];
    const lowest = this.list.closest("#thread, #completion").getBoundingClientRect().bottom;
    const hasRoom = at.bottom + this.card.offsetHeight < lowest;
    const top = hasRoom ? at.bottom + GAP_PX : at.top - this.card.offsetHeight - GAP_PX;
    const left = Math.max(0, Math.min(at.left - around.left, around.width - this.card.offsetWidth));
    this.card.style.setProperty("left", `${left}px`);
    this.card.style.setProperty("top", `${top - around.top}px`);
  }
}

function cardOf({ text, logprob, alternatives }) {
  const rows = alternatives.map((each) => row(each, each.text === text));
  return [element("strong", { text: `${visible(text)} ${percent(logprob)}` }), element("table", {}, element("tbody", {}, ...rows))];
}

function row({ text, logprob }, isChosen) {
  const share = element("meter", { min: 0, max: 1, value: Math.exp(logprob), "aria-hidden": "true" });
  const cells = [element("td", {}, element("code", { text: visible(text) })), element("td", {}, share), element("td", { text: percent(logprob) })];
  return element("tr", { class: isChosen ? "chosen" : null }, ...cells);
}

function percent(logprob) {
  const share = Math.exp(logprob) * 100;
  const digits = share < 1 ? 2 : 1;
  const shown = (number) => formatNumber(number, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return share < 0.01 ? translate("tokens.lessThan", { share: shown(0.01) }) : translate("tokens.percent", { share: shown(share) });
}
