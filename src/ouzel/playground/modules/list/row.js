// One conversation of the list: a link to it, what can be done with it, its tags, and the words that a search found in it.

import { button, element, isComposing } from "../dom.js";
import { addressOf } from "../routes.js";
import { searchFor } from "../storage/tag_search.js";
import { translate } from "../texts/texts.js";

/** `actions` has `open`, `pin`, `file`, `rename`, `exportOne` and `remove`. They get the record, and `rename` the row too. `showTag` gets a tag. */
export function rowOf(record, isCurrent, actions) {
  const { key, title, isPinned = false, tags = [], snippet = null } = record;
  const link = element(
    "a",
    { class: "title", dir: "auto", href: addressOf(key), title, "aria-current": isCurrent ? "true" : null, on: { click: (event) => open(event, record, actions) } },
    element("span", { class: "title-text", text: title }),
  );
  const row = element("li", { class: isCurrent ? "current" : null, data: { key } }, link);
  const tools = [
    button(translate(isPinned ? "list.unpin" : "list.pin", { title }), () => actions.pin(record), { icon: isPinned ? "★" : "☆" }),
    button(translate("list.file", { title }), () => actions.file(record), { icon: "", class: "file" }),
    button(translate("list.rename", { title }), () => actions.rename(record, row), { icon: "✎" }),
    button(translate("list.export", { title }), () => actions.exportOne(record), { icon: "⤓" }),
    button(translate("list.delete", { title }), () => actions.remove(record), { icon: "×" }),
  ];
  row.append(element("span", { class: "row-tools" }, ...tools));
  if (tags.length > 0) row.append(element("span", { class: "tags" }, ...tags.map((tag) => chipOf(tag, actions))));
  if (snippet !== null) row.append(snippetOf(snippet));
  return row;
}

/** Another tab or window is the browser's affair. */
function open(event, record, actions) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  actions.open(record);
}

function chipOf(tag, actions) {
  const label = translate("list.showTag", { tag: searchFor(tag) });
  return element("button", { type: "button", class: "tag", "aria-label": label, title: label, on: { click: () => actions.showTag(tag) } }, element("bdi", { text: searchFor(tag) }));
}

function snippetOf({ before, hit, after }) {
  return element("span", { class: "snippet", dir: "auto" }, before, element("mark", { text: hit }), after);
}

/** Returns a field for a title. `onEnd` is called once, with the new title, or null where the old one stays. */
export function titleField(title, onEnd, { label = translate("list.title"), limit = 200 } = {}) {
  const input = element("input", { "aria-label": label, dir: "auto", maxlength: limit });
  let isOpen = true;
  input.value = title;
  const end = (isKept) => {
    if (!isOpen) return;
    isOpen = false;
    onEnd(isKept ? input.value.trim() || null : null);
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (isComposing(event)) return;
    if (event.key === "Enter") event.preventDefault(); // the control that gets the focus is not pressed
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => end(true));
  return input;
}
