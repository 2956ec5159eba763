// Dialogs are the browser's own: they keep the focus inside, and Escape closes them.

import { button, element } from "../dom.js";
import { translate } from "../texts/texts.js";

let numOpened = 0;

/**
 * Shows a dialog and returns it; it is gone from the page once it is closed. The focus is on `focused`, else on the first
 * field, or on the heading of a dialog without fields.
 */
export function openDialog(title, children, { isWide = false, onClose = () => {}, focused = null } = {}) {
  const close = button(translate("dialog.close"), () => dialog.close(), { icon: "×", class: "close" });
  const id = `dialog-title-${(numOpened += 1)}`; // a dialog may open another
  const heading = element("header", {}, element("h2", { id, tabindex: -1, text: title }), close);
  const dialog = element("dialog", { class: isWide ? "wide" : null, "aria-labelledby": id }, heading, ...children);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  document.body.append(dialog);
  dialog.showModal();
  (focused ?? dialog.querySelector("input, select, textarea") ?? dialog.querySelector("h2")).focus();
  return dialog;
}

/** Resolves with whether a person agreed. */
export function confirmed(title, text, label) {
  return new Promise((resolve) => {
    let isAgreed = false;
    const agree = () => {
      isAgreed = true;
      dialog.close();
    };
    const leave = button(translate("dialog.leave"), () => dialog.close());
    const buttons = element("div", { class: "row end" }, leave, button(label, agree, { class: "danger" }));
    const dialog = openDialog(title, [element("p", { text }), buttons], { onClose: () => resolve(isAgreed), focused: leave });
  });
}
