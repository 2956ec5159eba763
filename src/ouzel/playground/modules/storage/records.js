// What this browser knows of each conversation: its title, its times, and where its messages are. All tabs share it
// through the database; a tab without a database has records of its own, which last as long as the page.

import { translate } from "../texts/texts.js";
import * as database from "./database.js";
import { filterByTags } from "./tag_search.js";
import { Tabs } from "./tabs.js";
import { Words } from "./words.js";

export class Records {
  #all = new Map();
  #words = new Words();
  #tabs = new Tabs((key, newKey) => this.#readChange(key, newKey));
  #isLossTold = false;

  /**
   * `onChange` is called when a record has changed, `onTrouble` with what could not be done, as text, and `onElsewhere`
   * with the key and the record (null: gone) of a conversation that another tab has changed, and its new key.
   */
  constructor({ onChange, onTrouble, onElsewhere }) {
    Object.assign(this, { onChange, onTrouble, onElsewhere });
  }

  async open() {
    const records = await database.all().catch((error) => this.#openEmpty(error));
    for (const record of records) this.#all.set(record.key, record);
    this.onChange();
  }

  get all() {
    return [...this.#all.values()];
  }

  get(key) {
    return this.#all.get(key) ?? null;
  }

  /** Returns the records that are shown, the newest first. */
  get shown() {
    return this.all.filter(({ deletedAt }) => deletedAt === undefined).sort((one, other) => other.updated - one.updated);
  }

  /** Returns the records that have all words and tags of a text, each with its `snippet` where its messages have one. */
  found(text) {
    const { found, rest } = filterByTags(this.shown, text);
    return this.#words.search(found, rest);
  }

  loadWords() {
    return this.#words.load();
  }

  /** Returns the record that this page knows, or that of the database where another tab has changed it since. */
  async newest(key) {
    const kept = await database.get(key).catch(() => null);
    const known = this.get(key);
    return kept === null || known?.updated > kept.updated ? known : kept;
  }

  /** Returns the messages of a conversation that this browser keeps; null where they are gone. */
  async content({ key, content }) {
    return content ?? (await database.content(key));
  }

  /** Messages and words that are not given stay as they are. */
  async keep(record, { content = null, words = null } = {}) {
    this.#all.set(record.key, record);
    if (words !== null) this.#words.set(record.key, words);
    try {
      await database.put(record, { content, words });
      this.#tabs.tell(record.key);
    } catch {
      this.#keepInPage(record, content);
    }
    this.onChange();
  }

  /** Keeps changes of many records. Their messages and words stay as they are. */
  async keepMany(records) {
    for (const record of records) this.#all.set(record.key, record);
    try {
      await database.putAll(records.map((record) => ({ record, content: null, words: null })));
      this.#tabs.tell(records.length === 1 ? records[0].key : null);
    } catch {
      for (const record of records) this.#keepInPage(record, null);
    }
    this.onChange();
  }

  /** Keeps many at once. Nobody is told before `tellAll`. Throws where the browser does not keep them. */
  async keepAll(entries) {
    await database.putAll(entries);
    for (const { record, words } of entries) {
      this.#all.set(record.key, record);
      this.#words.set(record.key, words);
    }
  }

  tellAll() {
    this.#tabs.tell(null);
    this.onChange();
  }

  /** `newKey` is that of a conversation which goes on under another key. */
  async forget(key, newKey = null) {
    this.#all.delete(key);
    this.#words.delete(key);
    await database.remove(key).catch(() => {}); // without a database there is nothing to remove
    this.#tabs.tell(key, newKey);
    this.onChange();
  }

  #keepInPage(record, content) {
    if (content !== null) this.#all.set(record.key, { ...record, content });
    if (!this.#isLossTold) this.onTrouble(translate("list.notKept"));
    this.#isLossTold = true;
  }

  #openEmpty(error) {
    if (error instanceof database.Blocked) this.onTrouble(translate("list.closeOtherTabs"));
    if (error instanceof database.Newer) this.onTrouble(translate("list.keptByNewerPage"));
    if (error instanceof database.Silent) this.onTrouble(translate("list.storeIsSilent"));
    return []; // a private window may have no database
  }

  async #readChange(key, newKey) {
    this.#words.renew();
    if (key === null) return this.open();
    const record = await database.get(key).catch(() => null);
    if (record === null) this.#all.delete(key);
    else this.#all.set(key, record);
    this.onChange();
    this.onElsewhere(key, record, newKey);
  }
}
