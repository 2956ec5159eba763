import { element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { openDialog } from "./dialog.js";

const SHORTCUTS = [
  ["Enter", "shortcuts.send"],
  ["Shift + Enter", "shortcuts.newLine"],
  ["Escape", "shortcuts.stop"],
  ["Alt + N", "shortcuts.newConversation"],
  ["Alt + F", "list.searchConversations"],
  ["Alt + S", "settings.settings"],
  ["Alt + P", "page.toMessage"],
  ["Alt + ↑", "shortcuts.editLast"],
  ["Alt + H", "shortcuts.thisList"],
];

export function showShortcuts() {
  const rows = SHORTCUTS.map(([keys, key]) => element("tr", {}, element("td", {}, element("kbd", { text: keys })), element("td", { text: translate(key) })));
  openDialog(translate("page.keys"), [element("table", { class: "shortcuts" }, element("tbody", {}, ...rows))]);
}
