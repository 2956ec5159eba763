// The part of the settings about the offline copy of the page.

import { announce } from "../announcer.js";
import { button, element, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { allowShell, canKeepShell, forgetShell, wantsShell } from "./shell.js";

/** Returns the parts of the section; none where this browser keeps no copy. */
export function offlineParts() {
  if (!canKeepShell()) return [];
  const place = element("div", { class: "offline-copy" });
  draw(place);
  return [place];
}

function draw(place) {
  const isKept = wantsShell();
  const text = element("p", { class: "muted", text: translate(isKept ? "offline.isKept" : "offline.isForgotten") });
  const change = async () => {
    await (isKept ? forgetShell() : allowShell());
    draw(place);
    announce(place.firstElementChild.textContent);
    place.querySelector("button").focus();
  };
  fill(place, text, button(translate(isKept ? "offline.forget" : "offline.keep"), change, { id: "offline-copy", class: "quiet" }));
}
