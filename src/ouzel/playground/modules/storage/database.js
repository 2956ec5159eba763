// IndexedDB as promises. It has one store of records by key, for what this browser keeps of conversations.

const NAME = "ouzel";
const STORE = "conversations";

let opened = null;

export async function all() {
  return run("readonly", (store) => store.getAll());
}

export async function get(key) {
  return (await run("readonly", (store) => store.get(key))) ?? null;
}

export async function put(record) {
  await run("readwrite", (store) => store.put(record));
}

export async function remove(key) {
  await run("readwrite", (store) => store.delete(key));
}

async function run(mode, act) {
  opened ??= open();
  const transaction = (await opened).transaction(STORE, mode);
  const ended = endOf(transaction);
  const [result] = await Promise.all([settled(act(transaction.objectStore(STORE))), ended]);
  return result;
}

function open() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "key" });
  return settled(request);
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
