// A conversation is a tree of messages: whoever edits or regenerates one begins a branch beside what was there.

import { isPicture } from "../files/kinds.js";
import { translate } from "../texts/texts.js";

/**
 * A message. `content` is text; `images` are data URLs with names; `files` have an `id` of the server, `name`, `size` and
 * `use` (kinds.js), and may be `isDeleted`; `toolCalls` have `id`, `name` and `arguments` (JSON
 * text); a tool's message has the `toolCallId` that it answers. `hosted` are items of tools that the server ran,
 * `citations` the sources that an answer names, and `approvals` decisions of a person about calls. What is known of how an answer came to be, its
 * `model` (a name), `figures`, `tokens` (log probabilities) and `error`, is for those who look at it and no part of later requests.
 */
export function message(role, properties = {}) {
  return {
    role,
    content: "",
    reasoning: "",
    images: [],
    files: [],
    toolCalls: [],
    toolCallId: null,
    hosted: [],
    citations: [],
    approvals: [],
    finishReason: null,
    model: null,
    figures: null,
    tokens: null,
    schema: null,
    error: null,
    ...properties,
  };
}

export class Conversation {
  #byId; // the nodes
  #lastId; // of all that were ever given: one of a message that was taken off does not come again

  /** `nodes` are in the order in which they came; each has an id, its parent's id (null for a first one) and a message. */
  constructor({ id = null, title = "", updated = Date.now(), nodes = [], activeLeaf = null, settings = null, labels = {} } = {}) {
    this.id = id;
    this.title = title;
    this.settings = settings; // values (settings/values.js); null: those of a new conversation
    this.labels = labels; // the folder and tags (storage/labels.js) as long as no record has them
    this.updated = updated;
    this.nodes = nodes.map((node) => ({ ...node, message: message(node.message.role, node.message) })); // those of older pages lack properties
    this.#byId = new Map(this.nodes.map((node) => [node.id, node]));
    this.activeLeaf = activeLeaf ?? nodes.at(-1)?.id ?? null;
    this.running = null; // the node of the answer that is being made
    this.answeredBy = null; // "page" or "tab", where an answer that was begun before is still to come
    this.waiting = null; // the wait for another try of its request
    this.record = null; // the library's, as it was when this conversation was last loaded or saved
    this.#lastId = nodes.reduce((largest, node) => Math.max(largest, node.id), 0);
  }

  get key() {
    return this.record?.key;
  }

  /** Adds a message behind the node of this id, and shows it. */
  add(parent, content) {
    this.#lastId += 1;
    const node = { id: this.#lastId, parent, message: content };
    this.nodes.push(node);
    this.#byId.set(node.id, node);
    this.activeLeaf = node.id;
    this.updated = Date.now();
    return node;
  }

  /** Those that can be kept: all but an answer that is being made, of which more would come. */
  get wholeNodes() {
    return this.nodes.filter((node) => node !== this.running);
  }

  node(id) {
    return this.#byId.get(id) ?? null;
  }

  /** Returns the nodes from the first message to the one that is shown last. */
  path(leaf = this.activeLeaf) {
    const found = [];
    for (let node = this.node(leaf); node !== null; node = this.node(node.parent)) found.push(node);
    return found.reverse();
  }

  /** Returns the nodes that stand in the same place, in the order in which they came. */
  siblings(node) {
    return this.nodes.filter((each) => each.parent === node.parent);
  }

  /** Shows the branch of this node, down to its newest message. */
  show(node) {
    let leaf = node;
    for (let next = node; next; next = this.nodes.findLast((each) => each.parent === leaf.id)) leaf = next;
    this.activeLeaf = leaf.id;
  }

  /** Tells whether there are messages behind a node. */
  hasBehind(node) {
    return this.nodes.some((each) => each.parent === node.id);
  }

  /** Takes off a message that came to nothing; it has none behind it. */
  remove(node) {
    this.nodes = this.nodes.filter((each) => each !== node);
    this.#byId.delete(node.id);
    this.activeLeaf = node.parent;
  }

  /** Notes that a file was deleted. */
  forget({ id }) {
    const files = this.nodes.flatMap((node) => node.message.files);
    for (const file of files.filter((each) => each.id === id)) file.isDeleted = true;
  }

  /** Returns the files of these nodes, each with the place of its node. */
  filesOf(ids) {
    return ids.flatMap((id, place) => this.node(id).message.files.map((file) => ({ ...file, place })));
  }

  /** Returns all texts of the conversation, for a search. */
  get words() {
    return this.nodes.map((node) => node.message.content).join("\n");
  }
}

/** Returns the title of a conversation that begins with a message: its first words, or the name of a file. */
export function titleOfMessage(content, { images, files }) {
  const file = files[0] ?? images.find(({ url }) => !isPicture(url));
  return titleOf(content || file?.name || translate("answer.titleOfPicture"));
}

/** Returns a title made of the first words of a conversation. */
function titleOf(text) {
  const line = text.trim().split("\n")[0];
  const characters = [...line]; // a title that ends within one is no text that can be sent
  return characters.length > 60 ? `${characters.slice(0, 59).join("").trimEnd()}…` : line || translate("list.untitled");
}
