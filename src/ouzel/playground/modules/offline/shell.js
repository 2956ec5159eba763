// The offline copy of the page: a service worker keeps it, in browsers that allow one (with https, or on this machine).

import { ROOT } from "../api.js";
import { KeptText } from "../storage/kept_text.js";
import { SHELL_KEEPER, trusted } from "../trusted_workers.js";

const NAMES = `ouzel-shell ${ROOT.pathname} `; // of the worker's caches
const OFF = "off";
const kept = new KeptText("localStorage", "ouzel.offlineCopy");

/** Tells whether this browser can keep a copy. */
export function canKeepShell() {
  return globalThis.isSecureContext && "serviceWorker" in navigator && "caches" in globalThis;
}

/** Tells whether a person wants a copy: that is so until it is forgotten. */
export function wantsShell() {
  return kept.value !== OFF;
}

/** Keeps the copy up to date, where a person wants one. What the browser does not allow is left. */
export async function keepShell() {
  if (!canKeepShell() || !wantsShell()) return;
  const options = { scope: ROOT.pathname, updateViaCache: "none" };
  await navigator.serviceWorker.register(trusted(SHELL_KEEPER), options).catch(() => {});
}

/** Deletes the copy, and makes no other. */
export async function forgetShell() {
  kept.value = OFF;
  const registration = await navigator.serviceWorker.getRegistration(ROOT.pathname);
  await registration?.unregister();
  const names = (await caches.keys()).filter((name) => name.startsWith(NAMES));
  await Promise.all(names.map((name) => caches.delete(name)));
}

/** Makes copies again. */
export async function allowShell() {
  kept.value = "";
  await keepShell();
}
