// One line about what has happened, above the conversation. It goes after a while, or when it is no longer true.

import { button, byId, element, fill } from "./dom.js";
import { translate } from "./texts/texts.js";

const NOTICE_MS = 12_000;
let timer = null;
let isTrue = () => true;

/**
 * Shows a line for a while. It goes before that when the state of the page changes and `holds` returns false. `action` may
 * be a button beside it: its `label`, and what it does (`act`).
 */
export function notice(text, holds = () => true, action = null) {
  isTrue = holds;
  const act = () => {
    endNotice();
    action.act();
  };
  fill(
    byId("notice"),
    element("span", { text }),
    action === null ? null : button(action.label, act, { class: "action" }),
    button(translate("page.closeNotice"), endNotice, { icon: "×" }),
  );
  clearTimeout(timer);
  timer = setTimeout(endNotice, NOTICE_MS);
}

/** Takes the line away where it is no longer true. */
export function checkNotice() {
  if (!isTrue()) endNotice();
}

function endNotice() {
  clearTimeout(timer);
  fill(byId("notice"));
}
