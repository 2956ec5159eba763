// One conversation of the list: a link to it, the words that a search found in it, and what can be done with it.

import { button, element, isComposing } from "../dom.js";
import { addressOf } from "../routes.js";
import { translate } from "../texts/texts.js";

/** `actions` has `open`, `pin`, `rename`, `exportOne` and `remove`. They get the record, and `rename` the row too. */
export function rowOf(record, isCurrent, actions) {
  const { key, title, isPinned = false, snippet = null } = record;
  const link = element(
    "a",
    { class: "title", dir: "auto", href: addressOf(key), title, "aria-current": isCurrent ? "true" : null, on: { click: (event) => open(event, record, actions) } },
    element("span", { class: "title-text", text: title }),
  );
  const row = element("li", { class: isCurrent ? "current" : null, data: { key } }, link);
  const tools = [
    button(translate(isPinned ? "list.unpin" : "list.pin", { title }), () => actions.pin(record), { icon: isPinned ? "★" : "☆" }),
    button(translate("list.rename", { title }), () => actions.rename(record, row), { icon: "✎" }),
    button(translate("list.export", { title }), () => actions.exportOne(record), { icon: "⤓" }),
    button(translate("list.delete", { title }), () => actions.remove(record), { icon: "×" }),
  ];
  row.append(element("span", { class: "row-tools" }, ...tools));
  if (snippet !== null) row.append(snippetOf(snippet));
  return row;
}

/** Another tab or window is the browser's affair. */
function open(event, record, actions) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  actions.open(record);
}

function snippetOf({ before, hit, after }) {
  return element("span", { class: "snippet", dir: "auto" }, before, element("mark", { text: hit }), after);
}

/** Puts a field for the title in a row. `onEnd` is called once, with the new title, or null where the old one stays. */
export function titleField(title, onEnd) {
  const input = element("input", { "aria-label": translate("list.title"), dir: "auto", maxlength: 200 });
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
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => end(true));
  return input;
}
