// Files of conversations: each conversation is recognised by what it contains, read one after the other, and kept.

import * as chatgpt from "./chatgpt.js";
import { ConversationFile } from "./file.js";
import * as openWebui from "./open_webui.js";
import * as own from "./own.js";
import { NotUnderstood } from "./tree.js";

const FORMATS = [own, chatgpt, openWebui];

/**
 * Reads files and keeps their conversations. `add` keeps some of them, and `duplicates` tells which ones are there already
 * (duplicates.js). `onProgress` gets the number of all that were looked at, and of all in the file. Aborting the signal
 * ends it. Returns how many were kept (`numKept`), how many were there before (`numKnown`), and of what was not
 * understood `refused`: reasons (keys of texts), with the number and the first name. `failure` is the Error that ended the
 * import, as on a full disk; null where none did.
 */
export async function importFiles(files, tools) {
  const result = { numKept: 0, numKnown: 0, refused: new Map(), failure: null };
  for (const file of files) {
    const conversations = new ConversationFile();
    try {
      await importFile(await conversations.open(file), conversations, result, tools);
    } catch (error) {
      if (error instanceof NotUnderstood) refuse(result, error.reason, file.name);
      else result.failure = error;
    } finally {
      conversations.close();
    }
    if (result.failure !== null) break;
  }
  return result;
}

async function importFile({ isOwn, count }, conversations, result, { add, duplicates, onProgress, signal }) {
  const before = new Map(result.refused);
  let place = 0;
  let isKnown = isOwn; // whether a conversation was recognised
  for await (const piece of conversations.pieces(signal)) {
    const formats = piece.map((given) => (isOwn ? own : FORMATS.find((format) => format.knows(given))));
    isKnown ||= formats.some((format) => format !== undefined);
    await keep(readAll(piece, formats, place, result), result, { add, duplicates });
    place += piece.length;
    onProgress(place, count);
  }
  if (isKnown || signal.aborted) return;
  result.refused = before;
  throw new NotUnderstood("import.unknownFormat");
}

/** Whatever is wrong with one conversation, the others are read. */
function readAll(piece, formats, start, result) {
  const read = [];
  for (const [index, given] of piece.entries()) {
    try {
      if (formats[index] === undefined) throw new NotUnderstood("import.noConversation");
      read.push(formats[index].read(given));
    } catch (error) {
      refuse(result, error instanceof NotUnderstood ? error.reason : "import.noConversation", nameOf(given, start + index));
    }
  }
  return read;
}

async function keep(read, result, { add, duplicates }) {
  const fresh = [];
  for (const each of read) {
    if (await duplicates.has(each)) result.numKnown += 1;
    else fresh.push(each);
  }
  if (fresh.length > 0) await add(fresh);
  result.numKept += fresh.length;
}

function refuse({ refused }, reason, name) {
  const before = refused.get(reason) ?? { count: 0, name };
  refused.set(reason, { ...before, count: before.count + 1 });
}

function nameOf(given, index) {
  const title = given?.title;
  return typeof title === "string" && title.trim() !== "" ? title.toWellFormed().slice(0, 80) : `#${index + 1}`;
}
