// The scripts of the page's workers. The content policy of the page lets an address through that its one policy of
// trusted types has made, and this policy makes those of these two scripts alone. A page can have it only once.

import { ROOT } from "./api.js";

/** The service worker, which keeps the page's shell. */
export const SHELL_KEEPER = new URL("playground/worker.js", ROOT).href;
/** The worker that reads files of conversations. */
export const FILE_READER = new URL("playground/modules/storage/import/reader_worker.js", ROOT).href;

const policy = globalThis.trustedTypes?.createPolicy("ouzel-worker", { createScriptURL: checked });

/** Returns an address as browsers want it where a script is loaded. */
export function trusted(address) {
  return policy?.createScriptURL(address) ?? checked(address);
}

function checked(address) {
  if (address !== SHELL_KEEPER && address !== FILE_READER) throw new TypeError("This is no script of the page.");
  return address;
}
