// What a file is, and for what it can be used: the model reads it, code in the sandbox opens it, or it is searched.

import { translate } from "../texts/texts.js";

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
const HEAD_BYTES = 65_536; // as much of a file as is looked at
const PDF = "%PDF-";
const SEARCHABLE = /\.(docx|pdf|html?)$/i; // beside texts
const TABLES = /\.(csv|tsv|jsonl?|xlsx?|parquet|sqlite3?|db|zip)$/i;
/** What a file can be used for, with the words for people. */
export const USES = {
  model: translate("files.useModel"),
  python: translate("files.usePython"),
  search: translate("files.useSearch"),
};

/** Tells a picture from another file, by its data URL or address. */
export function isPicture(url) {
  return url.startsWith("data:image/") || !url.startsWith("data:");
}

/** Returns "picture", "pdf", "text" or "other". Throws where the file cannot be read. */
export async function kindOf(file) {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  if (IMAGE_TYPES.includes(file.type)) return "picture";
  if (new TextDecoder("latin1").decode(head.slice(0, 1024)).includes(PDF)) return "pdf";
  return isText(head, file.size > HEAD_BYTES) ? "text" : "other";
}

/** Returns what a file of this kind can be used for with a model and a server. */
export function usesOf(kind, name, { model, server }) {
  const isRead = { picture: model.seesImages, pdf: model.readsPdfs, text: true, other: false }[kind];
  const isSearched = server.keepsFiles && server.searchesFiles && (kind === "text" || SEARCHABLE.test(name));
  const uses = { model: isRead, python: server.keepsFiles && server.runsPython, search: isSearched };
  return Object.keys(uses).filter((use) => uses[use]);
}

/** Returns the use that a person most likely means. `isPythonOn`: code runs in this chat. */
export function likelyUse(uses, kind, name, isPythonOn) {
  const isTable = isPythonOn && kind !== "picture" && TABLES.test(name);
  return isTable && uses.includes("python") ? "python" : uses[0];
}

/** `isCut`: the bytes may end within a character. */
function isText(bytes, isCut) {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut }).includes("\0");
  } catch {
    return false;
  }
}
