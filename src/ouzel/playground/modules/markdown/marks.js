// The marks of emphasis in one text, matched to each other: `*`, `_` and `~~`.

const TAGS = { 1: "em", 2: "strong" };

export class Marks {
  /** Those that have not been matched, and may be. */
  open = [];

  /** `reach` is how many characters may lie between two marks. */
  constructor(reach) {
    this.reach = reach;
  }

  add(mark) {
    mark.length = mark.count;
    if (mark.character !== "~" || mark.count === 2) this.open.push(mark);
  }

  /** Drops all marks behind a place. */
  forget(place) {
    while (this.open.length > 0 && this.open.at(-1).at > place) this.open.pop();
  }

  /** Matches the marks behind a place with each other. */
  match(place) {
    const searched = new Map(); // by the kind of a closer: where no opener for it is, nor before
    let index = this.open.findLastIndex((mark) => mark.at <= place) + 1; // from the end: there may be many before
    while (index < this.open.length) {
      const closer = this.open[index];
      const opener = closer.canClose ? this.#openerBefore(index, Math.max(searched.get(kindOf(closer)) ?? -1, place)) : -1;
      if (opener >= 0) {
        index = this.#join(opener, index);
        continue;
      }
      if (closer.canClose) searched.set(kindOf(closer), closer.at - 1);
      if (closer.canOpen) index += 1;
      else this.open.splice(index, 1);
    }
  }

  #openerBefore(index, place) {
    const closer = this.open[index];
    for (let each = index - 1; each >= 0; each -= 1) {
      const opener = this.open[each];
      if (opener.at <= place || closer.at - opener.at > this.reach) return -1;
      if (opener.canOpen && opener.character === closer.character && fit(opener, closer)) return each;
    }
    return -1;
  }

  /** Returns the index of the mark to look at next. Marks between two that belong together are text. */
  #join(openerIndex, closerIndex) {
    const [opener, closer] = [this.open[openerIndex], this.open[closerIndex]];
    const count = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
    const tag = opener.character === "~" ? "del" : TAGS[count];
    opener.opens.unshift({ tag });
    closer.closes.push(tag);
    opener.count -= count;
    closer.count -= count;
    this.open.splice(openerIndex + 1, closerIndex - openerIndex - 1);
    let next = openerIndex + 1;
    if (opener.count === 0) {
      this.open.splice(openerIndex, 1);
      next -= 1;
    }
    if (closer.count === 0) this.open.splice(next, 1);
    return next;
  }
}

/** Closers that look for the same openers are of one kind. */
function kindOf({ character, canOpen, length }) {
  return `${character}${canOpen}${length % 3}`;
}

/** A mark that can open and close fits one whose length does not make a multiple of three with its own. */
function fit(opener, closer) {
  const isEither = opener.canClose || closer.canOpen;
  return !isEither || (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

export function isPunctuation(character) {
  return character !== "" && /[\p{P}\p{S}]/u.test(character);
}
