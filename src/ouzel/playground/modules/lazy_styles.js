// Styles of parts that are loaded when they are first needed.

import { element } from "./dom.js";

/** Adds a file of `styles/` to the page, once. Resolves when it has come, or cannot come; the next call tries once more. */
export function addStyles(name) {
  const href = new URL(`../styles/${name}`, import.meta.url).href;
  if (document.querySelector(`link[href="${href}"]`) !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const giveUp = () => {
      link.remove();
      resolve();
    };
    const link = element("link", { rel: "stylesheet", href, on: { load: resolve, error: giveUp } });
    document.head.append(link);
  });
}
