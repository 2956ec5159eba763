// Parts of the page that are loaded when they are first needed, so that the page opens with few bytes.

import { notice } from "./notice.js";
import { translate } from "./texts/texts.js";

/**
 * Returns the module that `load` imports. Returns null where it cannot be loaded, as the server may be away: a notice says so,
 * with a button for `again` if that is given. The next call tries once more.
 */
export async function loadPart(load, again = null) {
  try {
    return await load();
  } catch {
    notice(translate("page.partNotLoaded"), () => true, again === null ? null : { label: translate("page.tryAgain"), act: again });
    return null;
  }
}
