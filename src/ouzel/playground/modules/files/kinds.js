// For what a file can be used: the model reads it, code in the sandbox opens it, both, or it is searched.

import { translate } from "../texts/texts.js";

const SEARCHABLE = /\.(docx|pdf|html?)$/i; // beside texts
const TABLES = /\.(csv|tsv|jsonl?|xlsx?|parquet|sqlite3?|db|zip)$/i;
const KINDS_BY_ENDING = { pdf: "pdf", docx: "word", png: "picture", jpg: "picture", jpeg: "picture", webp: "picture", gif: "picture", bmp: "picture" };
const KINDS = { text: "files.texts", picture: "files.pictures", video: "files.videos", pdf: "files.pdfs", word: "files.wordFiles" };
/** The type of a Word file in a data URL. */
export const WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/** What a file can be used for, with the words for people. */
export const USES = {
  model: translate("files.useModel"),
  python: translate("files.usePython"),
  both: translate("files.useBoth"),
  search: translate("files.useSearch"),
};

/** Tells a picture from another file, by its data URL or address. */
export function isPicture(url) {
  return kindOfUrl(url) === "picture";
}

/** Returns what a message has at a data URL or address: "picture", "video", "sound", "pdf", "word" or "text". */
export function kindOfUrl(url) {
  if (!url.startsWith("data:") || url.startsWith("data:image/")) return "picture";
  if (url.startsWith("data:video/")) return "video";
  if (url.startsWith("data:audio/")) return "sound";
  if (url.startsWith(`data:${WORD_TYPE}`)) return "word";
  return url.startsWith("data:application/pdf") ? "pdf" : "text";
}

/** Returns what an uploaded file of a message is. Files of older pages say so by their names alone. */
export function kindOfFile({ kind, name }) {
  return kind ?? KINDS_BY_ENDING[name.split(".").at(-1).toLowerCase()] ?? "text";
}

/** Tells whether a model reads files of a kind. */
export function isReadBy(kind, model) {
  return { picture: model.seesImages, video: model.seesVideos, pdf: model.readsPdfs, word: true, text: true }[kind] ?? false;
}

/** Says why a model does not read files of a kind. */
export function whyUnread(kind, model) {
  const values = { model: model.name };
  if (kind === "picture") return translate("files.seesNoPictures", values);
  if (kind === "video") return translate("files.seesNoVideos", values);
  if (kind === "sound") return translate("files.hearsNothing", values);
  if (kind === "pdf") return translate("files.serverReadsNoPdfs");
  return translate("files.unknownKind", { ...values, kinds: nameKinds(Object.keys(KINDS).filter((each) => isReadBy(each, model))) });
}

/** Returns what a file of this kind can be used for with a model and a server. */
export function usesOf(kind, name, { model, server }) {
  const isRead = isReadBy(kind, model) || (kind === "sound" && server.transcriber !== null);
  const isRun = server.keepsFiles && server.runsPython;
  const isSearched = server.keepsFiles && server.searchesFiles && (kind === "text" || SEARCHABLE.test(name));
  const uses = { model: isRead, python: isRun, both: isRead && isRun, search: isSearched };
  return Object.keys(uses).filter((use) => uses[use]);
}

/** Returns the use that a person most likely means. `isPythonOn`: code runs in this chat. */
export function likelyUse(uses, kind, name, isPythonOn) {
  const isTable = isPythonOn && kind !== "picture" && TABLES.test(name);
  return isTable && uses.includes("python") ? "python" : (uses[0] ?? "model");
}

export function isForModel(use) {
  return use === "model" || use === "both";
}

export function isForPython(use) {
  return use === "python" || use === "both";
}

/** Returns the names of kinds for people, as a list. */
export function nameKinds(kinds) {
  return kinds.map((kind) => translate(KINDS[kind])).join(", ");
}
