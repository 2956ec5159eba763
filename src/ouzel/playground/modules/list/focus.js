// The list is drawn anew when something in it changes: the focus is then where it was, or where its row has been.

import { byId } from "../dom.js";

const CONTROLS = "a, button";
const ROWS = "[data-key], [data-folder]"; // conversations, and headings of folders

/** Returns which control of which row has the focus; null where it is elsewhere. */
export function focusedPlace() {
  const row = document.activeElement?.closest(`#conversations :is(${ROWS})`) ?? null;
  if (row === null) return null;
  const control = [...row.querySelectorAll(CONTROLS)].indexOf(document.activeElement);
  return { name: nameOf(row), index: rows().indexOf(row), control: Math.max(control, 0) };
}

/** Gives the focus to the same control, or where its row is gone to the row that took its place. */
export function focusAgain({ name, index, control }) {
  const all = rows();
  const same = all.find((row) => nameOf(row) === name);
  const title = (same ?? all[Math.min(index, all.length - 1)])?.querySelector(CONTROLS);
  (same?.querySelectorAll(CONTROLS)[control] ?? title ?? byId("new")).focus();
}

function rows() {
  return [...byId("conversations").querySelectorAll(ROWS)];
}

/** A folder may have the name that is the key of a conversation. */
function nameOf({ dataset: { key, folder } }) {
  return key ?? `folder ${folder}`;
}
