// Conversations of a file that this browser has already: the same file was imported before, or exported here.

import * as database from "../database.js";

export class Duplicates {
  #records;
  #origins;

  /** `records` are those of the library. */
  constructor(records) {
    this.#records = records;
    this.#origins = new Set(records.shown.map(({ origin }) => origin));
  }

  /** Tells whether the browser has a conversation, or the file had it before. It gets the `origin` by which a later import knows it. */
  async has(given) {
    given.origin = originOf(given);
    if (this.#origins.has(given.origin) || (await this.#isOwn(given))) return true;
    this.#origins.add(given.origin);
    return false;
  }

  /** The conversation that was exported may have gone on since: it has all that the file has of it, and more. */
  async #isOwn({ id, nodes }) {
    const record = this.#records.get(id);
    if (record === null || record.deletedAt !== undefined || record.saved?.length < nodes.length) return false;
    const words = await database.wordsOf(id).catch(() => null);
    return words !== null && `${words}\n`.startsWith(`${wordsIn(nodes)}\n`);
  }
}

/** Returns a text that is the same where a conversation has the same messages and, as not each has an id, the same title. */
function originOf({ id, title, nodes }) {
  const name = id === "" ? `title ${title}` : `id ${id}`;
  return `${nodes.length}-${digest([name, ...nodes.flatMap(partsOf)])}`;
}

function partsOf({ parent, message: { role, content, reasoning, images, files } }) {
  return [String(parent), role, content, reasoning, ...images.map(({ url }) => String(url.length)), ...files.map((file) => file.id)];
}

function wordsIn(nodes) {
  return nodes.map(({ message }) => message.content).join("\n");
}

/** Returns 64 bits of texts, as they depend on each of their characters. A page without TLS has no better digest. */
function digest(texts) {
  let [one, other] = [0x811c9dc5, 0x9747b28c];
  for (const text of texts) {
    for (let index = 0; index <= text.length; index += 1) {
      const code = index < text.length ? text.charCodeAt(index) : 0x10000; // the end of a text is no character
      one = Math.imul(one ^ code, 0x01000193);
      other = Math.imul(other ^ code, 0x5bd1e995) ^ (other >>> 15);
    }
  }
  return [one, other].map((bits) => (bits >>> 0).toString(16)).join("");
}
