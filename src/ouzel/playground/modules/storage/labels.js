// The folder and the tags of a conversation. Their names come from people, files and servers: they have one line, a limit, and
// no characters that nobody sees or that turn the order of letters.

import { isObject } from "../objects.js";

export const MAX_FOLDER = 60; // characters of a name
export const MAX_TAG = 40;
export const MAX_TAGS = 10; // of a conversation: with the folder they fit into a value of the API's metadata, which has 512

const SPACES = /[\s\p{Cc}\p{Z}\u2800]+/gu; // U+2800 is a letter of Braille without a dot
const HIDDEN = /[^\P{DI}\u200c\u200d\ufe0f]/gu; // joiners and the sign for a coloured picture stay: scripts and emoji need them
const SEEN = /[^\s\p{DI}\p{Cf}\p{M}]/u;

/** Returns a name of a folder, or an empty text where nothing of it can be seen. */
export function folderName(text) {
  return nameIn(text, " ", MAX_FOLDER);
}

/** Returns a tag, which has no spaces, or an empty text where nothing of it can be seen. */
export function tagName(text) {
  return nameIn(text.trim().replace(/^#+/, ""), "-", MAX_TAG);
}

/** Returns the labels of an object that may have any `folder` and `tags`: those that are missing or wrong are left out. */
export function labelsIn(given) {
  const { folder, tags } = isObject(given) ? given : {};
  const name = typeof folder === "string" ? folderName(folder) : "";
  const found = tagsIn(Array.isArray(tags) ? tags : []);
  return { ...(name === "" ? {} : { folder: name }), ...(found.length === 0 ? {} : { tags: found }) };
}

/** Returns the labels as one text, in lines; empty where there are none. */
export function labelsText({ folder = "", tags = [] }) {
  return folder === "" && tags.length === 0 ? "" : [folder, ...tags].join("\n");
}

/** Returns the labels of such a text, which anybody may have written. */
export function labelsOfText(text) {
  const [folder, ...tags] = text.split("\n", 2 * MAX_TAGS);
  return labelsIn({ folder, tags });
}

/** Tells whether two names are the same but for capitals. */
export function isSameName(one, other) {
  return one.toLowerCase() === other.toLowerCase();
}

/** Returns tags without those that come twice. */
export function tagsIn(texts) {
  const found = [];
  for (const text of texts) {
    const tag = typeof text === "string" ? tagName(text) : "";
    if (tag !== "" && !found.some((each) => isSameName(each, tag)) && found.length < MAX_TAGS) found.push(tag);
  }
  return found;
}

function nameIn(text, space, limit) {
  const line = text.slice(0, 16 * limit).toWellFormed().normalize("NFC").replace(HIDDEN, "").replace(SPACES, space);
  const cut = [...trimmed(line, space)].slice(0, limit).join("");
  return SEEN.test(cut) ? trimmed(cut, space) : "";
}

function trimmed(line, space) {
  return line.replace(new RegExp(`^${space}+|${space}+$`, "g"), "");
}
