// What is dropped on the page may be folders: the files in them are taken, up to a limit.

/**
 * Returns the files of a drop, at most `limit` and one more, which tells that there are others. Hidden files in folders
 * are left out. The caller must be the listener of the event: the browser forgets the files after it.
 */
export function filesOfDrop(transfer, limit) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.() ?? null).filter((entry) => entry !== null);
  if (!entries.some(({ isDirectory }) => isDirectory)) return Promise.resolve([...transfer.files]);
  return filesOfEntries(entries, limit);
}

async function filesOfEntries(entries, limit) {
  const files = [];
  const waiting = [...entries];
  for (let entry = waiting.shift(); entry !== undefined && files.length <= limit; entry = waiting.shift()) {
    if (entry.isFile) files.push(await fileOf(entry));
    else waiting.push(...(await childrenOf(entry, limit)).filter(({ name }) => !name.startsWith(".")));
  }
  return files.filter((file) => file !== null);
}

function fileOf(entry) {
  return new Promise((resolve) => entry.file(resolve, () => resolve(null)));
}

/** Returns as many entries of a folder as can matter: a browser gives them in pieces. */
async function childrenOf(entry, limit) {
  const reader = entry.createReader();
  const found = [];
  for (let piece = await pieceOf(reader); piece.length > 0 && found.length <= 10 * limit; piece = await pieceOf(reader)) found.push(...piece);
  return found;
}

function pieceOf(reader) {
  return new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
}
