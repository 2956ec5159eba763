// The buttons around the chat, and the keys that do the same.

import { byId, isComposing } from "../dom.js";
import { openPart } from "../later.js";
import { listenToLanguage } from "../texts/language.js";
import { translate } from "../texts/texts.js";
import { nextTheme } from "../theme.js";
import { setOpen, toggle } from "./panels.js";

/** `actions` are functions: `begin`, `stop`, `toggleSettings`, `openTokenizer` and `manage`. */
export function listenToControls(actions) {
  const clicks = {
    "new": actions.begin,
    "open-tokenizer": actions.openTokenizer,
    "open-shortcuts": showShortcuts,
    "manage": actions.manage,
    "theme": () => showTheme(nextTheme()),
    "toggle-settings": actions.toggleSettings,
    "close-settings": actions.toggleSettings,
    "toggle-sidebar": () => toggle("sidebar"),
    "close-sidebar": () => toggle("sidebar"),
  };
  for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", () => act());
  listenToLanguage(byId("language"));
  document.addEventListener("keydown", (event) => press(event, actions));
}

export function showTheme(theme) {
  byId("theme").textContent = translate("page.themeNow", { theme: translate(`page.theme.${theme}`) });
}

function press(event, { begin, stop, toggleSettings }) {
  const isInDialog = document.querySelector("dialog[open]") !== null;
  if (event.key === "Escape" && !isInDialog && !isComposing(event)) stop();
  const keys = {
    KeyN: begin,
    KeyF: searchConversations,
    KeyS: toggleSettings,
    KeyP: () => byId("prompt").focus(),
    KeyH: showShortcuts,
    ArrowUp: editLast,
  };
  if (!event.altKey || event.ctrlKey || isInDialog || !keys[event.code]) return;
  event.preventDefault();
  keys[event.code]();
}

function searchConversations() {
  setOpen("sidebar", true);
  byId("search").focus();
}

function showShortcuts() {
  openPart(() => import("../dialogs/shortcuts_dialog.js"), (part) => part.showShortcuts());
}

/** Edits the last message of the person. */
function editLast() {
  const own = [...document.querySelectorAll("#thread .message.user")].at(-1);
  const edit = own && [...own.querySelectorAll("button")].find((each) => each.textContent === translate("message.edit"));
  edit?.click();
}
