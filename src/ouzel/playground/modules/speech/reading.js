// A text becomes speech by POST /v1/audio/speech, and is heard from its first sentence on.

import { translate } from "../texts/texts.js";
import { Player } from "./player.js";
import { spokenText } from "./spoken_text.js";
import { samplesOf } from "./wav_stream.js";

const PATH = "v1/audio/speech";

/**
 * Reads the text of an element aloud, until its end or until the signal is aborted. Throws where there is nothing to say, or
 * the server does not say it.
 */
export async function readAloud(prose, { api, settings, signal }) {
  const { voice } = settings.values;
  const input = spokenText(prose);
  if (input === "") throw new Error(translate("speech.nothingToRead"));
  const player = new Player(); // made while the press of the button still allows sound
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  try {
    // Every server can make WAV files.
    const body = { model: settings.server.speaker.name, input, response_format: "wav", ...(voice === "" ? {} : { voice }) };
    for await (const { samples, rate } of samplesOf(api.bytes(PATH, body, signal))) player.add(samples, rate);
    await Promise.race([player.ended(), aborted]);
  } finally {
    player.close();
  }
}
