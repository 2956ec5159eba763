// The folders of the list. A folder is there as long as a conversation names it. The browser keeps which folders are open.

import { button, element } from "../dom.js";
import { KeptText } from "../storage/kept_text.js";
import { LANGUAGE, translate } from "../texts/texts.js";
import { pinnedFirst } from "./groups.js";

const kept = new KeptText("localStorage", "ouzel.openFolders");
const names = new Intl.Collator(LANGUAGE, { numeric: true });

/** Returns the folders in the order of their names: each has its `name` and its `records`, pinned ones first. */
export function foldersIn(records) {
  const found = Map.groupBy(records.filter(({ folder }) => folder !== undefined), ({ folder }) => folder);
  const folders = [...found].map(([name, own]) => ({ name, records: pinnedFirst(own) }));
  return folders.sort((one, other) => names.compare(one.name, other.name));
}

/** Tells whether a person has opened a folder: at first each is folded. */
export function isOpen(name) {
  return openFolders().includes(name);
}

export function setOpen(name, isToOpen) {
  const others = openFolders().filter((each) => each !== name);
  kept.value = JSON.stringify(isToOpen ? [...others, name] : others);
}

/** Returns a folder with the rows of its conversations. `actions` has `toggle`, `begin`, `rename` and `remove`, which get the name, and `rename` the heading too. */
export function folderOf({ name, records }, rows, id, actions) {
  const hasRows = isOpen(name);
  const count = records.length;
  const fold = element(
    "button",
    { type: "button", class: "fold", "aria-expanded": String(hasRows), on: { click: () => actions.toggle(name) } },
    element("span", { class: "points", "aria-hidden": "true", text: hasRows ? "▾" : "▸" }),
    element("bdi", { title: name, text: name }),
    element("span", { class: "count", "aria-hidden": "true", text: count }),
    element("span", { class: "visually-hidden", text: translate("list.count", { count }) }),
  );
  const head = element("div", { class: "folder-head", data: { folder: name } }, element("h2", { class: "group", id }, fold));
  const tools = [
    button(translate("list.newInFolder", { folder: name }), () => actions.begin(name), { icon: "+" }),
    button(translate("list.renameFolder", { folder: name }), () => actions.rename(name, head), { icon: "✎" }),
    button(translate("list.deleteFolder", { folder: name }), () => actions.remove(name), { icon: "×" }),
  ];
  head.append(element("span", { class: "row-tools" }, ...tools));
  return element("section", { class: "folder" }, head, hasRows ? element("ul", { "aria-labelledby": id }, ...rows) : null);
}

function openFolders() {
  try {
    const found = JSON.parse(kept.value || "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return []; // another page of this origin may have written there
  }
}
