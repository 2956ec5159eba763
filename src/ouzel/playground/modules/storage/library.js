// All conversations that this browser knows: those that it keeps, and the names of those that the server keeps for it.

import { Conversation } from "../chat/conversation.js";
import { translate } from "../texts/texts.js";
import { readValues } from "../settings/values.js";
import { labelsIn } from "./labels.js";
import { modelsOf, takeModels } from "./metadata.js";
import { Records } from "./records.js";
import { ignoreMissing, isServerKey, WentOnElsewhere } from "./server_keeper.js";

/** Nobody here knows a conversation of this key. */
export class UnknownConversation extends Error {}

export class Library {
  #isSettingDue = new Set(); // conversations whose settings are to be kept
  #last = Promise.resolve(); // of what changes the records, one after the other

  /** `onSaved` is called with a conversation that was saved; the other functions are those of Records. */
  constructor(keeper, { onChange, onTrouble, onSaved = () => {}, onElsewhere = () => {} }) {
    Object.assign(this, { keeper, onTrouble, onSaved });
    this.records = new Records({ onChange, onTrouble, onElsewhere });
  }

  open() {
    return this.records.open();
  }

  async load(key) {
    await this.#last;
    const record = await this.records.newest(key);
    if (record === null) return this.#next(() => this.#adopt(key));
    if (record.deletedAt !== undefined) throw new UnknownConversation();
    const { title, updated } = record;
    const conversation = record.isOnServer ? await this.keeper.load(key) : new Conversation(await this.#content(record));
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

  /** Keeps a title that a person, or else the model, gave. The model's never replaces that of a person. */
  rename(key, title, { isNamed = true } = {}) {
    return this.#next(async () => {
      const record = await this.records.newest(key);
      if (record === null || (record.isNamed && !isNamed)) return;
      await this.records.keep({ ...record, title, isNamed });
      if (record.isOnServer) await this.keeper.rename(key, title).catch(() => {}); // the next save tells it
    });
  }

  /** Keeps what is set for a conversation, where it is kept itself. */
  keepSettings(conversation) {
    if (conversation.record === null || this.#isSettingDue.has(conversation)) return;
    this.#isSettingDue.add(conversation); // it will keep what is set then
    this.#next(async () => {
      this.#isSettingDue.delete(conversation);
      if (this.records.get(conversation.key) === null) return;
      const { settings } = conversation;
      Object.assign(conversation.record, { settings });
      await this.records.keep({ ...(await this.records.newest(conversation.key)), settings });
    }).catch((error) => this.onTrouble(error.message));
  }

  pin(key, isPinned) {
    return this.#change(key, (record) => ({ ...record, isPinned }));
  }

  /** Gives conversations other folders and tags: `change` gets those of each, and returns the new ones. */
  async relabel(keys, change) {
    const changed = await this.#next(async () => {
      const records = await Promise.all(keys.map((key) => this.records.newest(key)));
      const own = records.filter((record) => record !== null).map(({ folder, tags, ...record }) => ({ ...record, ...labelsIn(change({ folder, tags })) }));
      await this.records.keepMany(own);
      return own;
    });
    this.#tellLabels(changed.filter(({ isOnServer }) => isOnServer));
  }

  /** Takes a conversation out of the list, or puts it back where `time` is null. */
  setDeleted(key, time) {
    return this.#change(key, ({ deletedAt, ...record }) => (time === null ? record : { ...record, deletedAt: time }));
  }

  /** Deletes a conversation and its files for good. */
  remove(key) {
    return this.#next(async () => {
      const record = this.records.get(key);
      if (record === null) return;
      await this.keeper.removeFiles(this.#filesOfOnly(record));
      if (record.isOnServer) await this.keeper.remove(key).catch(ignoreMissing);
      await this.records.forget(key);
    });
  }

  /** Deletes a conversation and its files for good while the page is closed: nobody waits for it. */
  removeUnwatched(key) {
    const record = this.records.get(key);
    this.keeper.removeUnwatched(record.isOnServer ? key : null, this.#filesOfOnly(record));
    this.records.forget(key);
  }

  /** Keeps conversations from a file in this browser. Each is what import/tree.js makes of one. */
  async add(given) {
    const entries = given.map(({ id, origin, isPinned, isNamed, folder, tags, settings = null, ...content }) => {
      const conversation = new Conversation({ ...content, settings });
      const ids = conversation.nodes.map(({ id }) => id);
      const record = { key: newKey(), ...summary(conversation, ids), isPinned, isNamed, ...labelsIn({ folder, tags }), origin, isImported: true, isOnServer: false };
      return { record, words: conversation.words, content };
    });
    await this.#next(() => this.records.keepAll(entries));
  }

  /** Tells the server one after the other: what a person does meanwhile comes between them. */
  async #tellLabels(records) {
    for (const { key } of records) {
      await this.#next(() => this.keeper.label(key, this.records.get(key) ?? {})).catch(() => {}); // the next save tells it
    }
  }

  #change(key, change) {
    return this.#next(async () => {
      const record = await this.records.newest(key);
      if (record !== null) await this.records.keep(change(record));
    });
  }

  #next(change) {
    const done = this.#last.then(change);
    this.#last = done.catch(() => {}); // whoever asked for the change is told
    return done;
  }

  /** Returns the ids of the files that no other conversation has. Those of an imported conversation may be anybody's. */
  #filesOfOnly({ key, isImported = false, files = [] }) {
    if (isImported) return [];
    const others = this.records.all.filter((each) => each.key !== key).flatMap((each) => each.files ?? []);
    const kept = new Set(others.map(({ id }) => id));
    return [...new Set(files.filter(({ isDeleted }) => !isDeleted).map(({ id }) => id))].filter((id) => !kept.has(id));
  }

  async #content(record) {
    const content = await this.records.content(record);
    if (content === null) throw new UnknownConversation();
    return content;
  }

  /** Reads a conversation of the server that another browser began, and adds it to the list. */
  async #adopt(key) {
    if (!isServerKey(key)) throw new UnknownConversation();
    const conversation = await this.keeper.load(key).catch((error) => {
      throw error.status === 404 ? new UnknownConversation() : error;
    });
    const saved = conversation.nodes.map((node) => node.id);
    await this.#put(conversation, { key, ...summary(conversation, saved), ...conversation.labels, isOnServer: true });
    return conversation;
  }

  async #save(conversation, onServer) {
    if (conversation.record !== null) {
      if (this.records.get(conversation.key) === null) return; // it has been deleted meanwhile
      if ((await this.records.newest(conversation.key)).updated > conversation.record.updated) this.#fork(conversation);
    }
    if (conversation.record === null ? onServer : conversation.record.isOnServer) {
      try {
        return await this.#saveOnServer(conversation);
      } catch (error) {
        this.onTrouble(translate("list.keptHere", { reason: error.message }));
      }
    }
    await this.#saveHere(conversation, conversation.record);
  }

  /** Another tab added to the conversation: what this one shows becomes a conversation of its own. */
  #fork(conversation) {
    Object.assign(conversation, { id: null, labels: labelsIn(this.records.get(conversation.key)), record: null });
    this.onTrouble(translate("list.wentOnElsewhere"));
  }

  async #saveOnServer(conversation) {
    let saved;
    try {
      saved = await this.keeper.save(conversation, conversation.record?.saved ?? [], this.#marks(conversation));
    } catch (error) {
      if (!(error instanceof WentOnElsewhere)) throw error;
      this.#fork(conversation); // another browser added to it
      saved = await this.keeper.save(conversation, [], conversation.labels);
    }
    await this.#put(conversation, { key: conversation.id, ...this.#marks(conversation), ...summary(conversation, saved), isOnServer: true });
  }

  async #saveHere(conversation, record) {
    const key = record === null || record.isOnServer ? newKey() : record.key;
    const marks = this.#marks(conversation);
    conversation.id = null;
    const { title, updated, wholeNodes: nodes, running, activeLeaf } = conversation;
    const content = structuredClone({ title, updated, nodes, activeLeaf: activeLeaf === running?.id ? running.parent : activeLeaf });
    await this.#put(conversation, { key, ...marks, ...summary(conversation, nodes.map(({ id }) => id)), isOnServer: false }, content);
    if (record?.isOnServer) await this.records.forget(record.key, key);
  }

  /** Returns what the record has that its conversation does not know. One that is not kept yet may have been begun in a folder. */
  #marks({ key, labels }) {
    const { isPinned, isNamed, isImported, origin, deletedAt, folder, tags } = this.records.get(key) ?? labels;
    return Object.fromEntries(Object.entries({ isPinned, isNamed, isImported, origin, deletedAt, folder, tags }).filter(([, value]) => value !== undefined));
  }

  async #put(conversation, record, content = null) {
    conversation.record = record;
    await this.records.keep(record, { content, words: conversation.words });
    this.onSaved(conversation);
  }
}

function newKey() {
  return `local-${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}`;
}

/** `saved` are the ids of the nodes that are kept. */
function summary(conversation, saved) {
  const { title, updated, settings } = conversation;
  return { settings, models: modelsOf(conversation, saved), title, updated, files: conversation.filesOf(saved), saved };
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
