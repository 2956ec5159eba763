// Light, dark, or as the system has it; the choice stays in the browser.

import { KeptText } from "./storage/kept_text.js";

const kept = new KeptText("localStorage", "ouzel.theme");
const THEMES = ["system", "light", "dark"];

export function applyTheme() {
  const theme = current();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const meta of document.querySelectorAll("meta[name=theme-color]")) meta.media = mediaOf(meta.dataset.scheme, theme);
  return theme;
}

/** Returns when the browser's own frame takes a colour: a chosen theme wins over the system's. */
function mediaOf(scheme, theme) {
  if (theme === "system") return `(prefers-color-scheme: ${scheme})`;
  return theme === scheme ? "all" : "not all";
}

/** Takes the next theme and returns its name. */
export function nextTheme() {
  kept.value = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length];
  return applyTheme();
}

function current() {
  return THEMES.includes(kept.value) ? kept.value : "system";
}
