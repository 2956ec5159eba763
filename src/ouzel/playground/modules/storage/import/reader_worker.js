// A worker: it reads a file of conversations beside the page, which a large file would stop for many seconds, and hands
// them out a few at a time. It knows no format; it imports nothing, as the content policy of files allows a worker none.
//
// The page sends `{ file }`, and gets `{ isOwn, count }` or `{ reason }` (the key of a text). Then it sends `{}` for the
// next conversations, and gets `{ conversations }`, which are none at the end.

const OWN_FORMAT = "ouzel.conversations"; // own.js has the name, too
const ARCHIVE = "PK\u0003\u0004";
const MAX_CONVERSATIONS = 100_000; // of one file
const MAX_AT_ONCE = 50;
const MAX_WEIGHT = 200_000; // of those that are handed out at once: characters and values
const MAX_DEPTH = 64; // deeper values are left out: a page never writes them, and cannot take them over
const VALUE_WEIGHT = 20;

let conversations = [];
let place = 0;

self.addEventListener("message", async ({ data: { file } }) => {
  self.postMessage(file === undefined ? { conversations: next() } : await open(file));
});

async function open(file) {
  const { data, reason } = await parse(file);
  if (reason !== undefined) return { reason };
  const isOwn = data?.format === OWN_FORMAT;
  const list = isOwn ? data.conversations : data;
  conversations = Array.isArray(list) ? list : isOwn ? [] : [data];
  return conversations.length > MAX_CONVERSATIONS ? { reason: "import.tooMany" } : { isOwn, count: conversations.length };
}

async function parse(file) {
  let text;
  try {
    text = await textOf(file);
  } catch (error) {
    return { reason: error instanceof RangeError ? "import.tooLarge" : "import.unreadable" }; // it may be gone by now
  }
  if (text.startsWith(ARCHIVE)) return { reason: "import.isArchive" };
  try {
    return { data: JSON.parse(text) };
  } catch {
    return { reason: "import.noJson" };
  }
}

/** Windows' own programs write UTF-16 with a mark at the beginning. */
async function textOf(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const encoding = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : null;
  return encoding === null ? file.text() : new TextDecoder(encoding).decode(await file.arrayBuffer());
}

function next() {
  const found = [];
  for (let weight = 0; place < conversations.length && found.length < MAX_AT_ONCE && weight < MAX_WEIGHT; place += 1) {
    weight += weigh(conversations[place], 0);
    found.push(conversations[place]);
    conversations[place] = null; // its memory is free again
  }
  return found;
}

/** Returns how much a value is to hand over, and takes out of it what lies too deep. */
function weigh(value, depth) {
  if (typeof value === "string") return value.length + VALUE_WEIGHT;
  if (typeof value !== "object" || value === null) return VALUE_WEIGHT;
  let weight = VALUE_WEIGHT;
  for (const name of Object.keys(value)) {
    if (depth === MAX_DEPTH && typeof value[name] === "object") value[name] = null;
    weight += weigh(value[name], depth + 1);
  }
  return weight;
}
