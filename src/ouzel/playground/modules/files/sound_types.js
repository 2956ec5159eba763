// Sound files, by their first bytes: a browser does not know all their endings, and takes a sound in WebM or Ogg for a film.

const MP3 = /^(?:ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb])/;
const PICTURES = /V_VP[89]|V_AV1|V_MPEG|theora/; // names of codecs of films

/** Returns the type of a sound file; null where a file is none. `head` has its first bytes, `type` is the browser's. */
export function soundTypeOf(head, type) {
  if (type.startsWith("audio/")) return type;
  const text = new TextDecoder("latin1").decode(head);
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WAVE") return "audio/wav";
  if (text.startsWith("fLaC")) return "audio/flac";
  if (text.startsWith("OggS")) return PICTURES.test(text) ? null : "audio/ogg";
  if (text.startsWith("\x1aE\xdf\xa3")) return PICTURES.test(text) || !text.includes("A_") ? null : "audio/webm";
  if (/^ftypM4[AB] /.test(text.slice(4))) return "audio/mp4";
  return MP3.test(text) && !type ? "audio/mpeg" : null;
}
