// Speech becomes text by POST /v1/audio/transcriptions.

import { translate } from "../texts/texts.js";

const PATH = "v1/audio/transcriptions";

/** Returns the text of a sound file. Throws where the server refuses it, or finds no words in it. */
export async function transcribe(api, file, { server, signal, onProgress = () => {} }) {
  signal.throwIfAborted();
  const form = new FormData();
  if (server.transcriber !== null) form.append("model", server.transcriber.name); // else the server says why it takes none
  form.append("response_format", "json");
  form.append("file", file, file.name);
  const { text } = await api.upload(PATH, form, { onProgress, signal });
  if (typeof text !== "string" || text.trim() === "") throw new Error(translate("speech.noSpeech"));
  return text.trim();
}
