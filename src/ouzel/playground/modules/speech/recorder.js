// Records the microphone. The browser compresses what it hears until the end; only then it becomes a WAV file.

import { translate } from "../texts/texts.js";
import { wavOf } from "./wav.js";

const RATE = 16_000; // Hz; speech models hear no more
const REASONS = { NotAllowedError: "speech.notAllowed", SecurityError: "speech.notAllowed", NotFoundError: "speech.noMicrophone" };

/** Says why the page cannot have a microphone, whatever a person allows; empty where it can. */
export function whyNoRecorder() {
  if (!isSecureContext) return translate("speech.insecure");
  return navigator.mediaDevices === undefined || globalThis.MediaRecorder === undefined ? translate("speech.notInBrowser") : "";
}

export class Recorder {
  #pieces = [];
  #recorder;
  #stream;
  #ended;

  /** Asks for the microphone, and begins to record. Throws with a reason for people. */
  static async open() {
    const why = whyNoRecorder();
    if (why !== "") throw new Error(why);
    try {
      return Recorder.#begin(await navigator.mediaDevices.getUserMedia({ audio: true }));
    } catch (error) {
      const { name, message: reason } = error;
      throw new Error(Object.hasOwn(REASONS, name) ? translate(REASONS[name]) : translate("speech.microphoneFails", { reason }));
    }
  }

  static #begin(stream) {
    try {
      return new Recorder(stream);
    } catch (error) {
      stopTracks(stream);
      throw error;
    }
  }

  constructor(stream) {
    this.#stream = stream;
    this.#recorder = new MediaRecorder(stream);
    this.#recorder.addEventListener("dataavailable", ({ data }) => this.#pieces.push(data));
    this.#ended = new Promise((resolve) => this.#recorder.addEventListener("stop", resolve, { once: true }));
    this.#recorder.start();
  }

  /** Resolves when the recording has ended, also because the microphone was taken away. */
  get ended() {
    return this.#ended;
  }

  /** Ends the recording, and returns it as a WAV file. */
  async finish() {
    this.close();
    await this.#ended;
    return wavOf(await samplesOf(new Blob(this.#pieces)), RATE, translate("speech.recordingName"));
  }

  /** Ends the recording, and gives the microphone back. */
  close() {
    if (this.#recorder.state !== "inactive") this.#recorder.stop();
    stopTracks(this.#stream);
  }
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}

/** Returns the samples of a recording, of all channels together. */
async function samplesOf(blob) {
  const decoder = new OfflineAudioContext(1, 1, RATE); // it decodes to its own rate
  let sound;
  try {
    sound = await decoder.decodeAudioData(await blob.arrayBuffer());
  } catch {
    throw new Error(translate("speech.nothingRecorded"));
  }
  const [samples, ...others] = Array.from({ length: sound.numberOfChannels }, (_, number) => sound.getChannelData(number));
  if (others.length === 0) return samples;
  return samples.map((sample, index) => others.reduce((sum, channel) => sum + channel[index], sample) / (others.length + 1));
}
