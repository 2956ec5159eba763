// What a person says is written into the field for messages, at the cursor. Nothing is sent by itself.

import { announce } from "../announcer.js";
import { ApiError } from "../api.js";
import { button, element, fill, isComposing } from "../dom.js";
import { addStyles } from "../lazy_styles.js";
import { formatNumber, translate } from "../texts/texts.js";
import { Recorder } from "./recorder.js";
import { transcribe } from "./transcription.js";

const MAX_S = 1800; // of one recording, which is held in memory
const TICK_MS = 250;
const NEEDS_SPACE = /[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u;

export class Dictation {
  #work = null; // an AbortController, from the first press until the text is there
  #recorder = null;
  #timer = null;
  #began_ms = 0;
  #clock = element("bdi", { role: "timer" });
  #text = element("span");
  #line;

  /**
   * `button` begins and ends; `area` is the field for messages, `place` the line above it. `onFile` gets a recording that
   * the server could not turn into text now.
   */
  constructor({ button: control, area, place, api, server, notice, onFile }) {
    Object.assign(this, { control, area, api, server, notice, onFile });
    const discard = button(translate("speech.discard"), () => this.discard());
    this.#line = element("span", { class: "dictation", hidden: true }, this.#text, this.#clock, discard);
    place.prepend(this.#line);
    addStyles("speech.css");
    document.addEventListener("keydown", (event) => this.#pressKey(event), { capture: true });
  }

  /** Begins a recording, or ends the one that is being made. */
  press() {
    if (this.#work === null) this.#run();
    else if (this.#recorder !== null) this.#recorder.close();
  }

  /** Gives up what is being recorded or turned into text. */
  discard() {
    if (this.#work === null) return;
    this.#work.abort();
    this.#end();
    announce(translate("speech.discarded"));
    this.#focusArea();
  }

  async #run() {
    const work = (this.#work = new AbortController());
    let file = null;
    try {
      file = await this.#record(work.signal);
      this.#showState("speech.transcribing");
      const text = await transcribe(this.api, file, { server: this.server, signal: work.signal });
      if (work !== this.#work) return;
      this.#end();
      this.#write(text);
    } catch (error) {
      if (work !== this.#work) return; // it was discarded
      this.#end();
      this.notice(error.message, () => this.#work === null);
      if (file !== null && error instanceof ApiError) this.onFile(file); // its card tries again
    }
  }

  /** Returns the recording when a person ends it, the time is over, or the microphone is taken away. */
  async #record(signal) {
    const recorder = await Recorder.open();
    if (signal.aborted) recorder.close();
    signal.throwIfAborted();
    signal.addEventListener("abort", () => recorder.close());
    this.#recorder = recorder;
    this.#showRecording();
    await recorder.ended;
    this.#recorder = null;
    signal.throwIfAborted();
    this.#showRecorded();
    return recorder.finish();
  }

  #showRecording() {
    this.control.setAttribute("aria-pressed", "true");
    this.#showState("speech.recording");
    announce(translate("speech.howToStop"));
    this.#began_ms = performance.now();
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  #showRecorded() {
    clearInterval(this.#timer);
    fill(this.#clock);
    this.control.setAttribute("aria-pressed", "false");
    announce(translate("speech.transcribing"));
  }

  #showState(key) {
    this.#text.textContent = translate(key);
    this.#line.hidden = false;
    this.#line.classList.toggle("live", key === "speech.recording");
  }

  #tick() {
    const seconds = Math.floor((performance.now() - this.#began_ms) / 1000);
    this.#clock.textContent = `${formatNumber(Math.floor(seconds / 60))}:${formatNumber(seconds % 60, { minimumIntegerDigits: 2 })}`;
    if (seconds >= MAX_S) this.#recorder?.close();
  }

  #end() {
    clearInterval(this.#timer);
    this.#work = null;
    this.#recorder = null;
    fill(this.#clock);
    this.#line.hidden = true;
    this.control.setAttribute("aria-pressed", "false");
  }

  #pressKey(event) {
    if (event.key !== "Escape" || isComposing(event) || this.#work === null) return;
    if (document.querySelector("dialog[open]") !== null) return; // the key is for the dialog
    event.stopPropagation(); // an answer that is being made goes on
    this.discard();
  }

  #write(text) {
    const { area } = this;
    const { selectionStart: start, selectionEnd: end, value } = area;
    const before = NEEDS_SPACE.test(value.slice(0, start)) ? " " : "";
    const after = /^[^\s\p{P}]/u.test(value.slice(end)) ? " " : "";
    area.setRangeText(`${before}${text}${after}`, start, end, "end");
    area.dispatchEvent(new Event("input"));
    announce(translate("speech.written", { text }));
    this.#focusArea();
  }

  /** A person who is elsewhere on the page by now stays there. */
  #focusArea() {
    const { activeElement } = document;
    if (activeElement === document.body || this.area.form.contains(activeElement)) this.area.focus();
  }
}
