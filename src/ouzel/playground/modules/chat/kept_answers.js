// What the browser keeps of an answer while it is made, so that a page that is loaded again can go on with it: its place,
// its text so far, and the id of its response where the server makes it in the background. It is kept each second, and when
// the page is left.

const PREFIX = "ouzel.answer.";
const EVERY_MS = 1000;
const MAX_LENGTH = 1_000_000; // characters; a storage has room for a few millions
const PARTS = ["content", "reasoning", "toolCalls", "citations", "hosted", "schema", "model"];

/** Keeps one answer until it has ended. */
export class KeptAnswer {
  #timer = null;
  #leave = () => this.#write();
  #isOver = false;
  #conversation;
  #node;
  #responseId = null;

  constructor(conversation, node, responseId = null) {
    this.#conversation = conversation;
    this.#node = node;
    this.#responseId = responseId;
    this.key = conversation.key ?? null; // of its entry; null until the conversation is stored
  }

  get responseId() {
    return this.#responseId;
  }

  set responseId(id) {
    this.#responseId = id;
    this.#write();
  }

  /** Begins, once the conversation is stored. */
  begin() {
    if (this.#isOver) return;
    this.key = this.#conversation.key ?? null;
    this.#write();
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => this.#write(), EVERY_MS);
    addEventListener("pagehide", this.#leave);
  }

  /** Keeps the entry as it is: a later page, or another try, goes on with it. */
  pause() {
    this.#write();
    this.#close();
  }

  end() {
    this.#close();
    if (this.key !== null) forgetAnswer(this.key);
  }

  #close() {
    this.#isOver = true;
    clearInterval(this.#timer);
    removeEventListener("pagehide", this.#leave);
  }

  #write() {
    const parent = placeIn(this.#conversation, this.#node.parent);
    if (this.key === null || parent === null) return;
    const numSiblings = this.#conversation.siblings(this.#node).length - 1;
    const entry = { parent, numSiblings, responseId: this.#responseId };
    const said = Object.fromEntries(PARTS.map((name) => [name, this.#node.message[name]]).filter(([, value]) => value !== undefined));
    const texts = [{ ...entry, said }, { ...entry, said: { ...said, hosted: [] } }, entry].map((each) => JSON.stringify(each));
    const text = texts.find(({ length }) => length <= MAX_LENGTH);
    touch((storage) => storage.setItem(PREFIX + this.key, text));
  }
}

/** Returns what is kept of the answer of a conversation; null where there is nothing. */
export function keptAnswer(key) {
  try {
    return JSON.parse(touch((storage) => storage.getItem(PREFIX + key)) ?? "null");
  } catch {
    return null;
  }
}

export function forgetAnswer(key) {
  touch((storage) => storage.removeItem(PREFIX + key));
}

/** Returns the id that a node will have when its conversation is loaded again; null where it is not stored. */
function placeIn({ record }, id) {
  if (!record?.isOnServer) return id;
  const place = record.saved.indexOf(id);
  return place < 0 ? null : place + 1;
}

/** A browser may forbid its storage, and a storage may be full. */
function touch(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}
