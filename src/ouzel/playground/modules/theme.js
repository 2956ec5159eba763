// Light, dark, or as the system has it; the choice stays in the browser.

const KEY = "ouzel.theme";
const THEMES = ["system", "light", "dark"];

export function applyTheme() {
  const theme = current();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

/** Takes the next theme and returns its name. */
export function nextTheme() {
  localStorage.setItem(KEY, THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length]);
  return applyTheme();
}

function current() {
  const theme = localStorage.getItem(KEY);
  return THEMES.includes(theme) ? theme : "system";
}
