// A formula in a text: its TeX until it is drawn, then its MathML; or its TeX for good, with the reason, if it cannot be read.
// A text that is still being written makes the nodes of its end again and again, so what was drawn is kept. Many formulas at
// once are drawn some at a time, so that no task of the page is long.

import { button, copyFrom, element } from "../../dom.js";
import { translate } from "../../texts/texts.js";

const MAX_TASK_MS = 8;
const MAX_KEPT_MS = 24; // for formulas that were drawn before
const MAX_KEPT = 400;
const MAX_SHOWN = 10_000; // characters of TeX that is too long

const kept = new Map(); // nodes by TeX, those used last at the end
let typesetter = null; // its module, from the first formula on
let waiting = []; // formulas that are shown as TeX until now
let spentMs = 0; // of this task
let timer = null;

/** Returns the element of a formula. */
export function formulaView(tex, isDisplayed) {
  const host = element("span", { class: isDisplayed ? "formula displayed" : "formula", data: { tex: tex.slice(0, MAX_SHOWN) } });
  const formula = { host, tex, isDisplayed };
  const isKept = kept.has(keyOf(formula)) && spentMs < MAX_KEPT_MS;
  if (isKept || (waiting.length === 0 && isLoaded(tex) && spentMs < MAX_TASK_MS)) draw(formula);
  else {
    host.append(source(formula));
    waiting.push(formula);
  }
  if (waiting.length > 0 || spentMs > 0) timer ??= setTimeout(goOn);
  return host;
}

/** Returns TeX as code. A long one can be scrolled by the keyboard. */
export function source({ tex, isDisplayed, reason = null }) {
  const scrolled = isDisplayed ? { tabindex: "0", role: "group", "aria-label": translate("markdown.formula") } : {};
  return element("code", { class: isDisplayed ? "maths displayed" : "maths", title: reason, text: tex.length > MAX_SHOWN ? `${tex.slice(0, MAX_SHOWN)}…` : tex, ...scrolled });
}

/** Waits until all formulas are drawn. */
export async function whenDrawn() {
  while (timer !== null) await new Promise((done) => setTimeout(done));
}

async function goOn() {
  const next = waiting.find(({ tex }) => !isLoaded(tex));
  if (next !== undefined) await loadFor(next);
  spentMs = 0;
  let numDrawn = 0;
  for (; numDrawn < waiting.length && spentMs < MAX_TASK_MS && isLoaded(waiting[numDrawn].tex); numDrawn += 1) draw(waiting[numDrawn]);
  waiting = waiting.slice(numDrawn);
  timer = waiting.length > 0 || spentMs > 0 ? setTimeout(goOn) : null;
}

/** A formula whose means cannot be loaded stays TeX; the next one tries again. */
async function loadFor({ tex }) {
  try {
    typesetter ??= await import("./typesetter.js");
    await typesetter.load(tex);
  } catch {
    const reason = translate("markdown.formulaNotLoaded");
    for (const formula of waiting) formula.host.replaceChildren(source({ ...formula, reason }));
    waiting = [];
  }
}

function draw(formula) {
  const key = keyOf(formula);
  const start = performance.now();
  const drawn = kept.get(key) ?? drawNew(formula);
  kept.delete(key);
  kept.set(key, drawn);
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value);
  const node = drawn.cloneNode(true);
  if (!formula.isDisplayed || node.localName === "code") formula.host.replaceChildren(node);
  else formula.host.replaceChildren(scrolled(node), copier(formula));
  spentMs += performance.now() - start;
}

function drawNew(formula) {
  try {
    return typesetter.typeset(formula.tex, formula.isDisplayed);
  } catch (error) {
    if (!(error instanceof typesetter.Unreadable)) throw error;
    return source({ ...formula, reason: error.message });
  }
}

function scrolled(node) {
  return element("span", { class: "formula-box", tabindex: "0", role: "group", "aria-label": translate("markdown.formula") }, node);
}

function copier({ tex }) {
  const copy = button(translate("markdown.copyFormula"), () => copyFrom(copy, tex), { class: "copy-formula" });
  return copy;
}

function isLoaded(tex) {
  return typesetter !== null && typesetter.isLoaded(tex);
}

function keyOf({ tex, isDisplayed }) {
  return `${isDisplayed}${tex}`;
}
