// The tabs of this browser tell each other which conversations they have changed; each reads them from the database.

const NAME = "ouzel.conversations";

export class Tabs {
  #channel = globalThis.BroadcastChannel === undefined ? null : new BroadcastChannel(NAME);

  /** `onChange` is called with the key of a conversation that another tab has changed, or taken off, and its new key. */
  constructor(onChange) {
    if (this.#channel !== null) this.#channel.onmessage = ({ data }) => onChange(data.key, data.newKey);
  }

  /** Tells the other tabs. `newKey` is that of a conversation which goes on under another key; null of all: read everything. */
  tell(key, newKey = null) {
    this.#channel?.postMessage({ key, newKey });
  }
}
