// Files of conversations are recognised by what they contain, read one conversation after the other, and kept.

import * as chatgpt from "./chatgpt.js";
import * as openWebui from "./open_webui.js";
import * as own from "./own.js";
import { NotUnderstood } from "./tree.js";

const FORMATS = [own, chatgpt, openWebui];
const MAX_BYTES = 256_000_000; // of one file: a browser's text has at most 512 million characters
const MAX_CONVERSATIONS = 100_000; // of one file
const NUM_AT_ONCE = 100; // conversations that are kept in one go

/**
 * Reads files and keeps their conversations. `add` keeps some of them, and `onProgress` gets the number of all that were
 * looked at and, where it is known, of all in the file. Aborting the signal ends it. Returns how many were kept
 * (`numKept`), and of what was not understood `refused`: reasons (keys of texts), with the number and the first name.
 */
export async function importFiles(files, { add, onProgress, signal }) {
  const result = { numKept: 0, refused: new Map() };
  for (const file of files) {
    try {
      await importFile(file, result, { add, onProgress, signal });
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      refuse(result, error.reason, file.name);
    }
  }
  return result;
}

async function importFile(file, result, { add, onProgress, signal }) {
  const { format, conversations } = await recognise(file);
  for (let start = 0; start < conversations.length && !signal.aborted; start += NUM_AT_ONCE) {
    const read = [];
    for (const [index, given] of conversations.slice(start, start + NUM_AT_ONCE).entries()) {
      try {
        read.push(format.read(given));
      } catch (error) {
        // Whatever is wrong with one conversation, the others are read.
        refuse(result, error instanceof NotUnderstood ? error.reason : "import.noConversation", nameOf(given, start + index));
      }
    }
    if (read.length > 0) await add(read);
    result.numKept += read.length;
    onProgress(Math.min(start + NUM_AT_ONCE, conversations.length), conversations.length);
    await new Promise((resolve) => setTimeout(resolve)); // the page stays usable
  }
}

async function recognise(file) {
  if (file.size > MAX_BYTES) throw new NotUnderstood("import.tooLarge");
  const text = await file.text();
  if (text.startsWith("PK\u0003\u0004")) throw new NotUnderstood("import.isArchive");
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new NotUnderstood("import.noJson");
  }
  for (const format of FORMATS) {
    const conversations = format.conversationsIn(data);
    if (conversations === null) continue;
    if (conversations.length > MAX_CONVERSATIONS) throw new NotUnderstood("import.tooMany");
    return { format, conversations };
  }
  throw new NotUnderstood("import.unknownFormat");
}

function refuse({ refused }, reason, name) {
  const before = refused.get(reason) ?? { count: 0, name };
  refused.set(reason, { ...before, count: before.count + 1 });
}

function nameOf(given, index) {
  const title = given?.title;
  return typeof title === "string" && title.trim() !== "" ? title.toWellFormed().slice(0, 80) : `#${index + 1}`;
}
