// Plays samples one after the other while they arrive, by Web Audio: no element and no address of a file is needed.

const RATE = 24_000; // Hz, of most voices; the browser changes other rates to it
const LEAD_S = 0.05; // in front of a sound that begins after silence

export class Player {
  #context = new AudioContext({ sampleRate: RATE });
  #end_s = 0; // of what was added, on the clock of the context
  #last = null; // the promise of the end of the newest sound

  /** Plays samples between -1 and 1 when those before them have ended. */
  add(samples, rate) {
    const buffer = this.#context.createBuffer(1, samples.length, rate);
    buffer.copyToChannel(samples, 0);
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#context.destination);
    const start_s = Math.max(this.#end_s, this.#context.currentTime + LEAD_S);
    source.start(start_s);
    this.#end_s = start_s + buffer.duration;
    this.#last = new Promise((resolve) => source.addEventListener("ended", resolve, { once: true }));
  }

  /** Waits until everything that was added has been heard. */
  async ended() {
    await this.#last;
  }

  close() {
    this.#context.close();
  }
}
