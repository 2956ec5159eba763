// The words of conversations, for a search. They are read when a person searches for the first time.

import * as database from "./database.js";

const MAX_LENGTH = 20_000; // characters of a conversation that a search looks through
const NUM_BEFORE = 24; // characters of a snippet before the hit
const NUM_AFTER = 90;

export class Words {
  #own = new Map(); // of conversations that this page has changed
  #stored = null; // those of the database, once they are read

  set(key, text) {
    this.#own.set(key, text.slice(0, MAX_LENGTH));
  }

  delete(key) {
    this.#own.delete(key);
    this.#stored?.delete(key);
  }

  /** Forgets what the database has: another tab has changed it. */
  renew() {
    this.#stored = null;
    this.#own.clear();
  }

  async load() {
    this.#stored ??= await database.words().catch(() => new Map());
  }

  /** Returns the records whose titles and messages have all words of a text. */
  search(records, text) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (wanted.length === 0) return records;
    return records.map((record) => this.#match(record, wanted)).filter((found) => found !== null);
  }

  #match(record, wanted) {
    const words = this.#own.get(record.key) ?? this.#stored?.get(record.key) ?? "";
    const [title, lower] = [record.title.toLowerCase(), words.toLowerCase()];
    const places = wanted.map((word) => lower.indexOf(word));
    if (!wanted.every((word, index) => places[index] >= 0 || title.includes(word))) return null;
    const index = places.findIndex((place) => place >= 0);
    return { ...record, snippet: index < 0 ? null : snippetAt(lower.length === words.length ? words : lower, places[index], wanted[index].length) };
  }
}

/** Returns the words before a hit, the hit, and the words after it, in one line. */
function snippetAt(text, start, length) {
  const inLine = (piece) => piece.toWellFormed().replace(/\s+/g, " ");
  const first = Math.max(start - NUM_BEFORE, 0);
  const end = start + length;
  return {
    before: (first > 0 ? "…" : "") + inLine(text.slice(first, start)),
    hit: inLine(text.slice(start, end)),
    after: inLine(text.slice(end, end + NUM_AFTER)),
  };
}
