// A conversation of a file becomes a tree of messages, whatever its references say: those in a circle are cut, and
// messages whose parent is missing begin a branch of their own.

/** A conversation, or a file, that cannot be read: `reason` is the key of a text. */
export class NotUnderstood extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

const MAX_MESSAGES = 20_000; // of one conversation
const MAX_TITLE = 200; // characters

/**
 * `entries` are, in the order of the file, objects with an `id`, the `parent`'s id and a `message`, which is null where
 * the entry only leads from one message to others. Returns the nodes of a conversation, each behind its parent, and
 * their ids by those of the entries. Throws NotUnderstood where there are no messages, or too many.
 */
export function treeOf(entries) {
  if (entries.length > MAX_MESSAGES) throw new NotUnderstood("import.tooManyMessages");
  const children = childrenOf(entries);
  const nodes = [];
  const ids = new Map();
  const waiting = [];
  const begin = (entry, parent) => waiting.push({ entry, parent });
  for (const root of [...(children.get(null) ?? []), ...entries]) {
    begin(root, null); // an entry that no root leads to is in a circle, and begins a branch
    while (waiting.length > 0) {
      const { entry, parent } = waiting.pop();
      if (ids.has(entry.id)) continue;
      const own = entry.message === null ? parent : nodes.length + 1;
      ids.set(entry.id, own);
      if (entry.message !== null) nodes.push({ id: own, parent, message: entry.message });
      for (const child of (children.get(entry.id) ?? []).toReversed()) begin(child, own);
    }
  }
  if (nodes.length === 0) throw new NotUnderstood("import.noMessages");
  return { nodes, ids };
}

/** Returns the entries by the id of their parent; null has those without one. */
function childrenOf(entries) {
  const known = new Set(entries.map(({ id }) => id));
  const children = new Map();
  for (const entry of entries) {
    const parent = known.has(entry.parent) ? entry.parent : null;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(entry);
  }
  return children;
}

/** Makes one answer of several in a row: those without branches between them. */
export function joinAnswers({ nodes, ids }, join) {
  const numChildren = new Map();
  for (const { parent } of nodes) numChildren.set(parent, (numChildren.get(parent) ?? 0) + 1);
  const joined = new Map(); // nodes by their old ids
  const kept = [];
  for (const node of nodes) {
    const parent = node.parent === null ? null : joined.get(node.parent);
    if (parent !== null && parent.message.role === "assistant" && node.message.role === "assistant" && numChildren.get(node.parent) === 1) {
      join(parent.message, node.message);
      joined.set(node.id, parent);
      continue;
    }
    const own = { ...node, parent: parent?.id ?? null };
    kept.push(own);
    joined.set(node.id, own);
  }
  const ends = [...ids].map(([entry, id]) => [entry, joined.get(id)?.id ?? null]);
  return { nodes: kept, ids: new Map(ends) };
}

/** Returns a title that fits into the list. */
export function shortTitle(text, fallback) {
  const title = text.replace(/\s+/g, " ").trim() || fallback;
  return [...title].slice(0, MAX_TITLE).join("");
}
