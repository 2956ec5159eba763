// Further tries of a request that a busy server refused, or that did not reach the server. Nothing else is ever repeated.

const WAITS_S = [2, 4, 8, 16, 32]; // before the second try, the third and so on
const LONGEST_S = 3600;
const BUSY = [429, 503, 529];

/** Tells whether the server refused a request because it is busy now. */
export function isBusy({ status }) {
  return BUSY.includes(status);
}

/** Tells whether a request could not reach the server, or an answer broke off on its way. */
export function isUnreached({ status }) {
  return status === 0;
}

/** The time until the next try. `over` resolves at its end, and rejects where the answer is stopped before that. */
export class Wait {
  constructor(error, seconds, signal) {
    this.error = error;
    this.until = Date.now() + seconds * 1000;
    this.over = new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
      this.skip = resolve;
      setTimeout(resolve, seconds * 1000);
    });
  }

  /** Returns the whole seconds that are left. */
  get seconds() {
    return Math.max(0, Math.ceil((this.until - Date.now()) / 1000));
  }
}

/** The tries of one request. */
export class Tries {
  #num = 0;

  /** `onWait` gets each wait when it begins, and null at its end. */
  constructor({ signal, onWait }) {
    Object.assign(this, { signal, onWait });
  }

  /** Begins to count anew, as after something new has come. */
  reset() {
    this.#num = 0;
  }

  /**
   * Waits for the next try: as long as the server says and, after the first time, at least as long as it takes not to
   * press it. Throws the error after the last try.
   */
  async waitAfter(error) {
    if (this.#num >= WAITS_S.length) throw error;
    const said_s = error.retryAfter_s ?? null;
    const own_s = said_s !== null && this.#num === 0 ? 0 : WAITS_S[this.#num];
    this.#num += 1;
    const wait = new Wait(error, Math.min(Math.max(said_s ?? 0, own_s), LONGEST_S), this.signal);
    this.onWait(wait);
    try {
      await wait.over;
    } finally {
      this.onWait(null);
    }
  }

  /** Calls `attempt` until it succeeds, as long as `isPassing` returns true for its errors. */
  async run(attempt, isPassing) {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (!isPassing(error)) throw error;
        await this.waitAfter(error);
      }
    }
  }
}
