// The address of the page names the conversation that is shown: `#/c/<key>`; `#/` is a new one. Links, Back, Forward and
// a second tab lead to it. To show another conversation makes an entry of the history; a new key replaces the address.

const CONVERSATION = /^#\/c\/(.+)$/;
const NEW = "#/";
const OTHERS = ["#/compare", "#/completion"]; // what else the page shows

export class Routes {
  #shown = null; // the conversation whose address is the page's
  #waiting = null; // the one that is shown until that of the address has come
  #lost = null; // the empty one that stands at an address which leads to nothing
  #isLosing = false;

  /** `onLost` is called with the error where an address leads to nothing, and with null when another one is shown. */
  constructor(chat, { onLost }) {
    Object.assign(this, { chat, onLost });
    addEventListener("hashchange", () => this.go());
  }

  get isLost() {
    return this.#lost !== null;
  }

  /** Shows what the address names. */
  async go() {
    const { hash } = location;
    const { current } = this.chat;
    const key = keyIn(hash);
    if (OTHERS.includes(hash)) return this.#leaveTo(current);
    if (hash !== "" && !hash.startsWith(NEW)) return this.#stay();
    if (key !== null && key === current.key) return this.follow();
    this.#waiting = current;
    try {
      if (key === null) this.chat.begin();
      else await this.chat.open(key);
    } catch (error) {
      if (keyIn(location.hash) === key && this.chat.current === current) this.#lose(error);
    }
    this.#waiting = null;
    this.follow();
  }

  /** Makes the address that of the shown conversation. */
  follow() {
    const { current } = this.chat;
    const isUnsaved = current.key === undefined;
    if (this.#isLosing || this.#waiting === current || (this.#lost === current && isUnsaved)) return;
    if (OTHERS.includes(location.hash) && this.#shown === current) return;
    if (this.isLost) this.#find();
    const isSame = current === this.#shown;
    this.#shown = current;
    const address = addressOf(current.key);
    if (address === (location.hash || NEW)) return;
    if (isSame) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  }

  /** Leaves what else the page shows for the conversation; returns whether it was there. */
  leaveOther() {
    if (!OTHERS.includes(location.hash)) return false;
    history.pushState(null, "", addressOf(this.chat.current.key));
    return true;
  }

  /** Another tab keeps the conversation of this key under another one. */
  replace(key, newKey) {
    if (keyIn(location.hash) !== key) return;
    history.replaceState(null, "", addressOf(newKey));
    this.go();
  }

  /** The conversation stays where it is, until another one is shown. */
  #leaveTo(current) {
    this.#shown = current;
    if (this.isLost) this.#find();
  }

  /** The link to a place on the page is none to a conversation. */
  #stay() {
    history.replaceState(null, "", this.#shown === null ? NEW : addressOf(this.#shown.key));
  }

  #lose(error) {
    this.#isLosing = true;
    this.chat.begin();
    this.#isLosing = false;
    this.#shown = this.#lost = this.chat.current;
    this.onLost(error);
  }

  #find() {
    this.#lost = null;
    this.onLost(null);
  }
}

/** Returns the address of a conversation, or of a new one where there is no key. */
export function addressOf(key) {
  return key === undefined ? NEW : `#/c/${encodeURIComponent(key)}`;
}

/** Returns the key that an address names; null is a new conversation. */
function keyIn(hash) {
  const match = CONVERSATION.exec(hash);
  if (match === null) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return match[1]; // this page made no such address
  }
}
