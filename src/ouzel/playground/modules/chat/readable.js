// What the page can show of what a server or a file says of tools and sources. A part of another type would stop the page each
// time that it draws the message; so an item is looked at once, before it becomes a part of one.

import { footnotesOf } from "./footnotes.js";
import { hostedParts } from "./hosted_texts.js";

/** Tells whether the page can show an item of a tool. */
export function canBeShown(item) {
  try {
    const areTexts = Object.values(hostedParts(item)).every((part) => part === undefined || typeof part !== "object");
    return areTexts && areFiles(item.sources) && arePictures(item.outputs) && isText(item.id);
  } catch {
    return false;
  }
}

/** Tells whether the page can show a source that an answer names. */
export function canBeCited(citation) {
  try {
    return typeof citation.type === "string" && footnotesOf([citation], []) !== null;
  } catch {
    return false;
  }
}

function areFiles(sources) {
  return (sources ?? []).every(({ container_id: container, file_id: file, title }) => !container || !file || typeof title === "string");
}

function arePictures(outputs) {
  return (outputs ?? []).every(({ url }) => isText(url));
}

function isText(value) {
  return value === undefined || value === null || typeof value === "string";
}
