// All conversations that this browser knows: those that it keeps, and the names of those that the server keeps for it.

import { Conversation } from "../chat/conversation.js";
import * as database from "./database.js";

const MAX_WORDS = 20_000; // characters of a conversation that a search looks through

export class Library {
  #records = new Map();
  #saving = Promise.resolve();

  /** `onChange` is called when the list has changed, `onTrouble` with what could not be done, as text. */
  constructor(keeper, { onChange, onTrouble }) {
    this.keeper = keeper;
    this.onChange = onChange;
    this.onTrouble = onTrouble;
  }

  async open() {
    const records = await database.all().catch(() => []); // a private window may have no database
    for (const record of records) this.#records.set(record.key, record);
    this.onChange();
  }

  /** Returns the records that have all these words, the newest first. */
  found(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ title, words: text }) => {
      const haystack = `${title}\n${text}`.toLowerCase();
      return wanted.every((word) => haystack.includes(word));
    };
    return [...this.#records.values()].filter(matches).sort((one, other) => other.updated - one.updated);
  }

  async load(key) {
    const record = this.#records.get(key);
    const conversation = record.isOnServer ? await this.keeper.load(key) : new Conversation(record.content);
    conversation.key = key;
    conversation.title = record.title;
    if (record.isOnServer) await this.#put({ ...record, saved: conversation.nodes.map((node) => node.id) });
    return conversation;
  }

  /** Keeps what is new of a conversation. One is saved after the other: each adds to what the one before has saved. */
  save(conversation, { onServer }) {
    this.#saving = this.#saving.then(() => this.#save(conversation, onServer)).catch((error) => this.onTrouble(error.message));
    return this.#saving;
  }

  async rename(key, title) {
    const record = this.#records.get(key);
    await this.#put({ ...record, title, content: record.content && { ...record.content, title } });
  }

  async remove(key) {
    const record = this.#records.get(key);
    if (record.isOnServer) await this.keeper.remove(key).catch((error) => ignoreMissing(error));
    this.#records.delete(key);
    await database.remove(key);
    this.onChange();
  }

  async #save(conversation, onServer) {
    const record = this.#records.get(conversation.key) ?? null;
    if (conversation.key !== undefined && record === null) return; // it has been deleted meanwhile
    if (record === null ? onServer : record.isOnServer) {
      try {
        return await this.#saveOnServer(conversation, record);
      } catch (error) {
        this.onTrouble(`The server does not keep this conversation, so this browser does: ${error.message}`);
      }
    }
    await this.#saveHere(conversation, record);
  }

  async #saveOnServer(conversation, record) {
    const saved = await this.keeper.save(conversation, record?.saved ?? []);
    conversation.key = conversation.id;
    await this.#put({ ...summary(conversation), isOnServer: true, saved });
  }

  async #saveHere(conversation, record) {
    if (record?.isOnServer) await this.#forget(record.key);
    const isNew = record === null || record.isOnServer;
    conversation.key = isNew ? `local-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}` : record.key;
    conversation.id = null;
    const { title, updated, nodes, activeLeaf } = conversation;
    const content = structuredClone({ title, updated, nodes, activeLeaf });
    await this.#put({ ...summary(conversation), isOnServer: false, content });
  }

  async #forget(key) {
    this.#records.delete(key);
    await database.remove(key);
  }

  async #put(record) {
    this.#records.set(record.key, record);
    await database.put(record).catch(() => {}); // without a database it lasts as long as the page
    this.onChange();
  }
}

function summary({ key, title, updated, words }) {
  return { key, title, updated, words: words.slice(0, MAX_WORDS) };
}

function ignoreMissing(error) {
  if (error.status !== 404) throw error;
}
