// What is in a file: its kind, and of texts their lines. Texts are read here, so that a person learns at once whether
// they can be read.

import { numPagesOf } from "./pdf_pages.js";
import { soundTypeOf } from "./sound_types.js";

const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
const HEAD_BYTES = 65_536; // as much of a file as tells its kind
const MAX_READ_BYTES = 8_000_000; // of a text that is read whole
const MAX_COUNTED_BYTES = 900_000; // of a text whose tokens the server counts
const SAMPLE_CHARACTERS = 100_000; // of a longer one
const PDF = "%PDF-";
const ARCHIVE = "PK\x03\x04";
const PART_OF_WORD = "word/document"; // the beginning of the name of the main part
const TAIL_BYTES = 65_536; // with the names of all parts of an archive

/**
 * Returns what is known of a file: its `kind` ("picture", "video", "sound", "pdf", "word", "text" or "other"), the `file` to
 * send, and, where they are known, `numLines`, `numPages` and the `text`: a `sample` and how many times as long all of
 * it is (`scale`). Throws where the file cannot be read.
 */
export async function lookAt(file) {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const soundType = soundTypeOf(head, file.type);
  if (soundType !== null) return { kind: "sound", file: new File([file], file.name, { type: soundType }) };
  const kind = kindOf(head, file.type);
  if (kind === "pdf") return { kind, file, numPages: await numPagesOf(file).catch(() => null) };
  if (kind !== "other") return { kind, file };
  if (await isWordFile(head, file)) return { kind: "word", file };
  const encoding = encodingOf(head);
  const text = await readText(file, encoding);
  if (text === null) return { kind, file };
  // The server reads texts in UTF-8 only.
  const sent = encoding === "utf-8" ? file : new File([text.sample], file.name, { type: "text/plain" });
  return { kind: "text", file: sent, ...measure(text, file.size) };
}

function kindOf(head, type) {
  if (PICTURE_TYPES.includes(type)) return "picture";
  if (type.startsWith("video/") && !isLikelyText(head)) return "video"; // .ts is TypeScript, too
  return new TextDecoder("latin1").decode(head.slice(0, 1024)).includes(PDF) ? "pdf" : "other";
}

/** The server looks at the file once more: an archive may have such a name in it and be no Word file. */
async function isWordFile(head, file) {
  const readable = new TextDecoder("latin1");
  if (!readable.decode(head.slice(0, ARCHIVE.length)).startsWith(ARCHIVE)) return false;
  return readable.decode(await file.slice(-TAIL_BYTES).arrayBuffer()).includes(PART_OF_WORD);
}

function isLikelyText(head) {
  return decoded(head, "utf-8", true) !== null;
}

/** The first bytes of a text may name its encoding. */
function encodingOf([first, second]) {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
}

/** Returns the beginning of a text and the number of bytes that it has; null where the file is no text. */
async function readText(file, encoding) {
  const isCut = file.size > MAX_READ_BYTES;
  if (isCut && encoding !== "utf-8") return null;
  const part = isCut ? file.slice(0, SAMPLE_CHARACTERS) : file;
  const sample = decoded(new Uint8Array(await part.arrayBuffer()), encoding, isCut);
  return sample === null ? null : { sample, numBytes: part.size };
}

/** `isCut`: the bytes may end within a character. */
function decoded(bytes, encoding, isCut) {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: isCut });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function measure({ sample, numBytes }, size) {
  const ends = sample.match(/\n/g)?.length ?? 0;
  const numLines = ends + (sample === "" || sample.endsWith("\n") ? 0 : 1);
  const scale = size > numBytes ? size / numBytes : 1;
  const text = scale > 1 || size <= MAX_COUNTED_BYTES ? { sample, scale } : { sample: sample.slice(0, SAMPLE_CHARACTERS), scale: sample.length / SAMPLE_CHARACTERS };
  return { numLines: Math.round(numLines * scale), isCut: scale > 1, text };
}
