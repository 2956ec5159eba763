// Dialogs are the browser's own: they keep the focus inside, and Escape closes them.

import { button, element } from "../dom.js";

/** Shows a dialog and returns it; it is gone from the page once it is closed. */
export function openDialog(title, children, { isWide = false, onClose = () => {} } = {}) {
  const close = button("Close", () => dialog.close(), { icon: "×", class: "close" });
  const heading = element("header", {}, element("h2", { id: "dialog-title", text: title }), close);
  const dialog = element("dialog", { class: isWide ? "wide" : null, "aria-labelledby": "dialog-title" }, heading, ...children);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  document.body.append(dialog);
  dialog.showModal();
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
    const buttons = element("div", { class: "row end" }, button("Leave it", () => dialog.close()), button(label, agree, { class: "danger" }));
    const dialog = openDialog(title, [element("p", { text }), buttons], { onClose: () => resolve(isAgreed) });
  });
}
