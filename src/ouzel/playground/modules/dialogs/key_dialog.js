// The server wants an API key: one is asked for, and kept in this tab.

import { Api, ApiError } from "../api.js";
import { element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { openDialog } from "./dialog.js";

const SENDABLE = "\\s*[\\x21-\\x7e]+\\s*"; // what a header can hold

let asking = null; // several requests may need a key at once

/** Resolves when a person has given a key, and rejects where they close the dialog. `trouble` says what was wrong. */
export function askForKey(trouble) {
  asking ??= ask(trouble).finally(() => (asking = null));
  return asking;
}

function ask(trouble) {
  return new Promise((resolve, reject) => {
    let isGiven = false;
    const input = element("input", { type: "password", autocomplete: "off", required: true, pattern: SENDABLE, title: translate("key.signs"), "aria-label": translate("key.label"), id: "api-key" });
    const form = element(
      "form",
      { method: "dialog" },
      element("p", { text: translate("key.isNeeded") }),
      trouble ? element("p", { class: "fault", role: "alert", text: trouble }) : null,
      input,
      element("div", { class: "row end" }, element("button", { type: "submit", class: "primary", text: translate("key.use") })),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      isGiven = true;
      Api.keepKey(input.value.trim());
      dialog.close();
    });
    const end = () => (isGiven ? resolve() : reject(new ApiError(401, translate("key.missing"))));
    const dialog = openDialog(translate("key.label"), [form], { onClose: end });
  });
}
