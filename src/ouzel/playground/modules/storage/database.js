// IndexedDB as promises: what this browser keeps of conversations. A record in the first store is what the list shows.
// Its messages and its words stand in stores of their own, so that a list of thousands opens without them.

import { translate } from "../texts/texts.js";

const NAME = "ouzel";
const VERSION = 2;
const RECORDS = "conversations";
const CONTENTS = "contents";
const WORDS = "words";
const STORES = [RECORDS, CONTENTS, WORDS];

let opened = null;

const PATIENCE_MS = 10_000;

/** The disk, or the share of it that the browser gives, has no room for a change. */
class Full extends Error {
  constructor() {
    super(translate("list.storeIsFull"));
  }
}

/** Another tab has an older page open, and keeps the database from being changed. */
export class Blocked extends Error {}

/** A newer page has changed the database, which this page cannot read. */
export class Newer extends Error {}

/** The browser has not opened the database for a long time. */
export class Silent extends Error {}

/** Returns all records, without their messages and words. */
export async function all() {
  return run([RECORDS], "readonly", (store) => store(RECORDS).getAll());
}

export async function get(key) {
  return (await run([RECORDS], "readonly", (store) => store(RECORDS).get(key))) ?? null;
}

/** Returns the messages of a conversation; null where the server has them. */
export async function content(key) {
  return (await run([CONTENTS], "readonly", (store) => store(CONTENTS).get(key)))?.content ?? null;
}

/** Returns the words of all conversations, by their keys. */
export async function words() {
  const found = await run([WORDS], "readonly", (store) => store(WORDS).getAll());
  return new Map(found.map(({ key, words: text }) => [key, text]));
}

/** Returns the words of one conversation; null where there are none. */
export async function wordsOf(key) {
  return (await run([WORDS], "readonly", (store) => store(WORDS).get(key)))?.words ?? null;
}

/** Keeps a record. Messages and words that are not given stay as they are. */
export async function put(record, { content = null, words = null } = {}) {
  await putAll([{ record, content, words }]);
}

/** Keeps many records in one transaction. */
export async function putAll(entries) {
  await run(STORES, "readwrite", (store) => {
    for (const { record, content, words } of entries) {
      store(RECORDS).put(record);
      if (content !== null) store(CONTENTS).put({ key: record.key, content });
      if (words !== null) store(WORDS).put({ key: record.key, words });
    }
  });
}

export async function remove(key) {
  await run(STORES, "readwrite", (store) => {
    for (const name of STORES) store(name).delete(key);
  });
}

async function run(names, mode, act) {
  opened ??= open();
  const transaction = (await opened).transaction(names, mode);
  const ended = endOf(transaction);
  const request = act((name) => transaction.objectStore(name));
  try {
    const [result] = await Promise.all([request === undefined ? null : settled(request), ended]);
    return result;
  } catch (error) {
    throw error?.name === "QuotaExceededError" ? new Full() : error;
  }
}

async function open() {
  const request = indexedDB.open(NAME, VERSION);
  request.onupgradeneeded = ({ oldVersion }) => upgrade(request.result, request.transaction, oldVersion);
  const database = await Promise.race([settled(request).catch(explain), unopened(request)]);
  database.onversionchange = () => {
    database.close(); // a newer page wants to change it
    opened = null;
  };
  return database;
}

/** Makes what is missing. Records of the first version held their messages and words themselves. */
function upgrade(database, transaction, oldVersion) {
  if (oldVersion < 1) database.createObjectStore(RECORDS, { keyPath: "key" });
  for (const name of [CONTENTS, WORDS]) database.createObjectStore(name, { keyPath: "key" });
  if (oldVersion < 1) return;
  transaction.objectStore(RECORDS).openCursor().onsuccess = ({ target: { result: cursor } }) => {
    if (cursor === null) return;
    const { content, words, ...record } = cursor.value;
    if (content !== undefined) transaction.objectStore(CONTENTS).put({ key: record.key, content });
    if (words !== undefined) transaction.objectStore(WORDS).put({ key: record.key, words });
    cursor.update(record);
    cursor.continue();
  };
}

function explain(error) {
  throw error.name === "VersionError" ? new Newer() : error;
}

/** Fails where the database is not opened. The next use tries again. */
function unopened(request) {
  return new Promise((_, reject) => {
    const patience = setTimeout(() => giveUp(new Silent()), PATIENCE_MS);
    request.addEventListener("success", () => clearTimeout(patience));
    request.addEventListener("error", () => clearTimeout(patience));
    request.onblocked = () => giveUp(new Blocked());
    function giveUp(reason) {
      clearTimeout(patience);
      opened = null;
      request.onsuccess = () => request.result.close(); // nobody waits for it any more
      reject(reason);
    }
  });
}

/** A change can still be refused at the end of its transaction, as where the disk has no room. */
function endOf(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
