// Parts of the page that are loaded when they are first needed, so that the page opens with few bytes.

import { notice } from "./notice.js";
import { answers } from "./offline/away.js";
import { translate } from "./texts/texts.js";

let newestWish = null; // of a part that opens something
const triedAgain = new Set(); // messages of browsers, which name the module that failed

/**
 * Loads a part and gives it to `open`, unless a person has wished for another part, or once more for this one, before it
 * came: a double click opens one dialog.
 */
export async function openPart(load, open) {
  const wish = (newestWish = {});
  const part = await loadPart(load);
  if (part !== null && wish === newestWish) open(part);
}

/**
 * Returns the module that `load` imports. Returns null where it cannot be loaded, as the server may be away: a notice says so,
 * with a button for `again` if that is given. The next call tries once more.
 */
export async function loadPart(load, again = null) {
  try {
    return await load();
  } catch (error) {
    await tellFailure(error.message, again);
    return null;
  }
}

/** Tells why a part is missing. Firefox keeps a module that failed as failed until the whole page is loaded again. */
async function tellFailure(message, again) {
  if (triedAgain.has(message) && (await answers())) {
    const reload = { label: translate("page.loadAgain"), act: () => location.reload() };
    return void notice(translate("page.partStaysAway"), () => true, reload);
  }
  const act = () => {
    triedAgain.add(message);
    again();
  };
  notice(translate("page.partNotLoaded"), () => true, again === null ? null : { label: translate("page.tryAgain"), act });
  if (again === null) triedAgain.add(message); // a person has asked for the part, and the next time is another try
}
