// A text as the model's tokens, from POST /v1/tokenize.

import { visible } from "../chat/token_view.js";
import { element, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { openDialog } from "./dialog.js";

const WAIT_MS = 200; // after the last key
const MAX_SHOWN = 4000; // tokens

export function openTokenizer(api, model) {
  const area = element("textarea", { rows: 5, "aria-label": translate("tokenizer.text"), placeholder: translate("tokenizer.placeholder"), id: "tokenizer-text" });
  const count = element("p", { role: "status", class: "muted" });
  const list = element("div", { class: "tokens plain-tokens", tabindex: 0, role: "group", "aria-label": translate("tokenizer.tokens") });
  openDialog(translate("tokenizer.title", { model: model.name }), [area, count, list], { isWide: true });
  let timer = null;
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => tokenize(api, model, area, { count, list }), WAIT_MS);
  });
}

async function tokenize(api, model, area, { count, list }) {
  const text = area.value;
  try {
    const body = { model: model.name, prompt: text, add_special_tokens: false, return_token_strs: true };
    const { tokens, token_strs: texts } = await api.post("v1/tokenize", body);
    if (area.value !== text) return; // a later text is on its way
    count.textContent = countText(tokens.length, [...text].length);
    fill(list, ...tokens.slice(0, MAX_SHOWN).map((id, index) => tokenSpan(id, texts[index], index)));
  } catch (error) {
    count.textContent = error.message;
    fill(list);
  }
}

function countText(numTokens, numCharacters) {
  const characters = translate("tokenizer.characters", { count: numCharacters });
  const text = translate("tokenizer.count", { count: numTokens, characters });
  return numTokens > MAX_SHOWN ? translate("tokenizer.countOfShown", { text, shown: MAX_SHOWN }) : text;
}

function tokenSpan(id, text, index) {
  return element("span", { class: `token stripe-${index % 4}`, title: String(id), text: visible(text).replaceAll("⏎", "⏎\n") });
}
