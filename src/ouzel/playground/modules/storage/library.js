// All conversations that this browser knows: those that it keeps, and the names of those that the server keeps for it.

import { Conversation } from "../chat/conversation.js";
import { translate } from "../texts/texts.js";
import * as database from "./database.js";
import { readValues } from "../settings/values.js";
import { modelsOf, takeModels } from "./metadata.js";
import { ignoreMissing } from "./server_keeper.js";

const MAX_WORDS = 20_000; // characters of a conversation that a search looks through

export class Library {
  #records = new Map();
  #isLossTold = false;
  #isSettingDue = new Set(); // conversations whose settings are to be kept
  #last = Promise.resolve(); // of what changes the records, one after the other

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
    await this.#last;
    const record = await this.#newest(key);
    const conversation = record.isOnServer ? await this.keeper.load(key) : new Conversation(record.content);
    const { title, updated } = record;
    if (record.isOnServer) putFilesBack(conversation, record.files ?? []);
    takeModels(conversation, record.models);
    if (record.settings) conversation.settings = readValues(record.settings).values;
    const saved = conversation.nodes.map((node) => node.id);
    return Object.assign(conversation, { title, updated, record: record.isOnServer ? { ...record, saved } : record });
  }

  /** Keeps what is new of a conversation. One is saved after the other: each adds to what the one before has saved. */
  save(conversation, { onServer }) {
    return this.#next(() => this.#save(conversation, onServer)).catch((error) => this.onTrouble(error.message));
  }

  rename(key, title) {
    return this.#next(async () => {
      const record = await this.#newest(key);
      await this.#keep({ ...record, title, content: record.content && { ...record.content, title } });
    });
  }

  /** Keeps what is set for a conversation, where it is kept itself. */
  keepSettings(conversation) {
    if (conversation.record === null || this.#isSettingDue.has(conversation)) return;
    this.#isSettingDue.add(conversation); // it will keep what is set then
    this.#next(async () => {
      this.#isSettingDue.delete(conversation);
      if (!this.#records.has(conversation.key)) return;
      const { settings } = conversation;
      const record = { ...(await this.#newest(conversation.key)), settings };
      Object.assign(conversation.record, { settings });
      this.#records.set(record.key, record);
      await database.put(record).catch(() => this.#tellLoss());
    }).catch((error) => this.onTrouble(error.message));
  }

  remove(key) {
    return this.#next(async () => {
      const record = this.#records.get(key);
      await this.keeper.removeFiles(this.#filesOfOnly(record));
      if (record.isOnServer) await this.keeper.remove(key).catch(ignoreMissing);
      await this.#forget(key);
      this.onChange();
    });
  }

  /** Returns the ids of the files that no other conversation has. */
  #filesOfOnly(record) {
    const others = [...this.#records.values()].filter((each) => each !== record).flatMap(({ files }) => files ?? []);
    const kept = new Set(others.map(({ id }) => id));
    return [...new Set((record.files ?? []).filter(({ isDeleted }) => !isDeleted).map(({ id }) => id))].filter((id) => !kept.has(id));
  }

  #next(change) {
    const done = this.#last.then(change);
    this.#last = done.catch(() => {}); // whoever asked for the change is told
    return done;
  }

  /** Returns the record that this page knows, or that of the database where another tab has changed it since. */
  async #newest(key) {
    const kept = await database.get(key).catch(() => null);
    const known = this.#records.get(key);
    return kept === null || known?.updated > kept.updated ? known : kept;
  }

  async #save(conversation, onServer) {
    if (conversation.record !== null) {
      if (!this.#records.has(conversation.key)) return; // it has been deleted meanwhile
      if ((await this.#newest(conversation.key)).updated > conversation.record.updated) this.#fork(conversation);
    }
    const { record } = conversation;
    if (record === null ? onServer : record.isOnServer) {
      try {
        return await this.#saveOnServer(conversation, record);
      } catch (error) {
        this.onTrouble(translate("list.keptHere", { reason: error.message }));
      }
    }
    await this.#saveHere(conversation, record);
  }

  /** Another tab added to the conversation: what this one shows becomes a conversation of its own. */
  #fork(conversation) {
    Object.assign(conversation, { id: null, record: null });
    this.onTrouble(translate("list.wentOnElsewhere"));
  }

  async #saveOnServer(conversation, record) {
    const saved = await this.keeper.save(conversation, record?.saved ?? []);
    await this.#put(conversation, { key: conversation.id, ...summary(conversation, saved), isOnServer: true, saved });
  }

  async #saveHere(conversation, record) {
    if (record?.isOnServer) await this.#forget(record.key);
    const isNew = record === null || record.isOnServer;
    const key = isNew ? `local-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}` : record.key;
    conversation.id = null;
    const { title, updated, wholeNodes: nodes, running, activeLeaf } = conversation;
    const content = structuredClone({ title, updated, nodes, activeLeaf: activeLeaf === running?.id ? running.parent : activeLeaf });
    await this.#put(conversation, { key, ...summary(conversation, nodes.map(({ id }) => id)), isOnServer: false, content });
  }

  async #forget(key) {
    this.#records.delete(key);
    await database.remove(key).catch(() => {}); // without a database there is nothing to remove
  }

  async #put(conversation, record) {
    conversation.record = record;
    await this.#keep(record);
  }

  async #keep(record) {
    this.#records.set(record.key, record);
    await database.put(record).catch(() => this.#tellLoss());
    this.onChange();
  }

  #tellLoss() {
    if (!this.#isLossTold) this.onTrouble(translate("list.notKept"));
    this.#isLossTold = true;
  }
}

/** `ids` are those of the nodes that are kept. */
function summary(conversation, ids) {
  const { title, updated, words, settings } = conversation;
  return { settings, models: modelsOf(conversation, ids), title, updated, words: words.slice(0, MAX_WORDS), files: conversation.filesOf(ids) };
}

/** Gives messages from the server what it does not keep of their files: their sizes, and files that are not for the model. */
function putFilesBack(conversation, files) {
  for (const { place, ...file } of files) {
    const own = conversation.nodes[place]?.message.files ?? [];
    const known = own.find(({ id }) => id === file.id);
    if (known === undefined) own.push(file);
    else Object.assign(known, file);
  }
}
