// The conversations of the list that are in no folder, in groups: pinned ones, then by the day on which they last went on.

import { LANGUAGE, translate } from "../texts/texts.js";

const DAY_MS = 24 * 3600 * 1000;
const NUM_RECENT = 7; // days
const months = new Intl.DateTimeFormat(LANGUAGE, { month: "long", year: "numeric" });

/** Returns groups with a `title` and their `records`, in the order of the list. */
export function groupsOf(records, now = Date.now()) {
  const today = new Date(now).setHours(0, 0, 0, 0);
  const pinned = records.filter(({ isPinned }) => isPinned);
  const groups = pinned.length > 0 ? [{ title: translate("list.pinned"), records: pinned }] : [];
  for (const record of records) {
    if (record.isPinned) continue;
    const title = titleOf(record.updated, today);
    if (groups.at(-1)?.title !== title || groups.at(-1).records === pinned) groups.push({ title, records: [] });
    groups.at(-1).records.push(record);
  }
  return groups;
}

export function pinnedFirst(records) {
  return [...records.filter(({ isPinned }) => isPinned), ...records.filter(({ isPinned }) => !isPinned)];
}

function titleOf(time, today) {
  if (time >= today) return translate("list.today");
  const numDays = Math.ceil((today - time) / DAY_MS); // a day of 23 or 25 hours moves the border by an hour
  if (numDays === 1) return translate("list.yesterday");
  return numDays <= NUM_RECENT ? translate("list.lastDays", { count: NUM_RECENT }) : months.format(time);
}
