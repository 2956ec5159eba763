import { element } from "../dom.js";
import { openDialog } from "./dialog.js";

const SHORTCUTS = [
  ["Enter", "Send"],
  ["Shift + Enter", "A new line"],
  ["Escape", "Stop the answer"],
  ["Alt + N", "A new conversation"],
  ["Alt + F", "Search conversations"],
  ["Alt + S", "Settings"],
  ["Alt + P", "To the field for messages"],
  ["Alt + ↑", "Edit the last message of yours"],
  ["Alt + H", "This list"],
];

export function showShortcuts() {
  const rows = SHORTCUTS.map(([keys, what]) => element("tr", {}, element("td", {}, element("kbd", { text: keys })), element("td", { text: what })));
  openDialog("Keys", [element("table", { class: "shortcuts" }, element("tbody", {}, ...rows))]);
}
