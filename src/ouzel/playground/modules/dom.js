// Nodes are built one by one. No text is ever read as HTML.

import { translate } from "./texts/texts.js";

/**
 * Returns an element. `properties` may have `class`, `text`, `on` (listeners by event) and `data`; all others are
 * attributes, of which those that are null, undefined or false are left out.
 */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name === "on") addListeners(node, value);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Returns a button that shows `label` as text, or, where there is an icon, tells it to screen readers and on hover. */
export function button(label, onClick, { icon = null, ...properties } = {}) {
  const named = icon === null ? { text: label } : { text: icon, "aria-label": label, title: label };
  return element("button", { type: "button", ...named, ...properties, on: { click: onClick } });
}

/** Returns a labelled field: a <label> with the control in it, and a hint below. */
export function field(label, control, hint = "") {
  const text = element("span", { class: "field-label", text: label });
  return element("label", { class: "field" }, text, control, hint ? element("small", { text: hint }) : null);
}

/** Puts other children in the place of those that are there. */
export function fill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** Makes these the children, in this order; those that stay are not taken out, as that would lose the scroll position. */
export function arrange(node, children) {
  for (const child of [...node.children]) if (!children.includes(child)) child.remove();
  for (const [index, child] of children.entries()) {
    if (node.children[index] !== child) node.insertBefore(child, node.children[index] ?? null);
  }
}

/** Tells whether a key belongs to an input method, which is still putting a word together. Safari says so by a code alone. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Offers a text as a file to keep. */
export function download(name, text, mediaType) {
  downloadBlob(name, new Blob([text], { type: mediaType }));
}

/** Offers a file to keep. */
export function downloadBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Copies a text, and says so in the button for a moment. */
export async function copyFrom(control, text) {
  control.dataset.label ??= control.textContent; // whoever copies twice sees it say so twice
  control.textContent = (await isCopied(control, text)) ? translate("page.copied") : translate("page.copyNotAllowed");
  setTimeout(() => {
    control.textContent = control.dataset.label;
  }, 1500);
}

async function isCopied(control, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return isCopiedByCommand(control, text);
  }
}

/** A page without TLS, as of a server in one's own network, has no clipboard: its text must be selected somewhere. */
function isCopiedByCommand(control, text) {
  const area = element("textarea", { class: "visually-hidden", readonly: true, "aria-hidden": "true" });
  area.value = text;
  control.after(area); // what is outside an open dialog cannot be selected
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  control.focus();
  return isDone;
}

function addListeners(node, listeners) {
  for (const [type, listener] of Object.entries(listeners)) node.addEventListener(type, listener);
}
