// Texts that browsers would lay out for seconds: letters under towers of accents, and endless words.

import { element } from "../dom.js";

const MAX_MARKS = 30; // of one letter, as Unicode's text for streams has them
const TOWER = new RegExp(`(\\p{M}{${MAX_MARKS}})\\p{M}+`, "gu");
const MAX_WORD = 5000; // characters; a longer one was not written for readers
const WORDS = /[!-~]+/g;
const PIECE = /.{1,1000}/g;

/** Returns a text without the accents that are too many for a letter. */
export function withoutTowers(text) {
  return text.length > MAX_MARKS ? text.replace(TOWER, "$1") : text;
}

/** Returns the nodes and strings that show a text: an endless word is in pieces, each a box of its own. */
export function textNodes(text) {
  const flat = withoutTowers(text);
  const nodes = [];
  let end = 0;
  for (const { 0: word, index } of flat.length > MAX_WORD ? flat.matchAll(WORDS) : []) {
    if (word.length <= MAX_WORD) continue;
    if (index > end) nodes.push(flat.slice(end, index));
    nodes.push(...word.match(PIECE).map((piece) => element("span", { class: "word-piece", text: piece })));
    end = index + word.length;
  }
  return end < flat.length ? [...nodes, flat.slice(end)] : nodes;
}
