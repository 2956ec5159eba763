// What changes on the page is told to screen readers through one live region.

import { byId } from "./dom.js";

export function announce(text) {
  const region = byId("announcer");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = text)); // the same text twice is told twice
}
