// A search for tags: a word that begins with # is a tag, or where no conversation has such a tag, a word like all others.

const MARK = "#";

/** Returns the records that have the tags in a text, and the words of the text that are no tags (`rest`). */
export function filterByTags(records, text) {
  const rest = [];
  let found = records;
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const wanted = word.startsWith(MARK) ? tagsFor(records, word.slice(MARK.length).toLowerCase()) : new Set();
    if (wanted.size === 0) rest.push(word);
    else found = found.filter(({ tags = [] }) => tags.some((tag) => wanted.has(tag.toLowerCase())));
  }
  return { found, rest: rest.join(" ") };
}

/** Returns the text of a search for a tag. */
export function searchFor(tag) {
  return MARK + tag;
}

/** Returns the tag that a person wrote; while no conversation has it, all tags that begin like it. */
function tagsFor(records, written) {
  if (written === "") return new Set();
  const all = new Set(records.flatMap(({ tags = [] }) => tags.map((tag) => tag.toLowerCase())));
  return all.has(written) ? new Set([written]) : new Set([...all].filter((tag) => tag.startsWith(written)));
}
