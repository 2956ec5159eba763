// The list of conversations and the settings lie beside the chat, or over it where the page is narrow.

import { byId } from "../dom.js";

const CONTROLS = { sidebar: "toggle-sidebar", settings: "toggle-settings" }; // the button of each

export function isOpen(panel) {
  return document.body.classList.contains(`${panel}-open`);
}

export function setOpen(panel, isToOpen) {
  document.body.classList.toggle(`${panel}-open`, isToOpen);
  byId(CONTROLS[panel]).setAttribute("aria-expanded", String(isToOpen));
}

/** Opens or closes a panel. The focus goes to its first control, or back to its button. */
export function toggle(panel) {
  const isToOpen = !isOpen(panel);
  setOpen(panel, isToOpen);
  if (isToOpen) byId(panel).querySelector("button, input, select, textarea")?.focus();
  else byId(CONTROLS[panel]).focus();
}

/** Opens the list where there is room beside the chat. */
export function openWhereWide() {
  if (matchMedia("(min-width: 60.01rem)").matches) setOpen("sidebar", true);
}

/** Closes the list where it lies over the chat, as on a phone; returns whether it did. */
export function leaveSidebar() {
  const isOver = isOpen("sidebar") && matchMedia("(max-width: 45rem)").matches;
  if (isOver) setOpen("sidebar", false);
  return isOver;
}
