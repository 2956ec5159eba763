// A conversation that is open in several tabs: what one of them adds is shown in the others too.

import { translate } from "./texts/texts.js";

export class SharedConversation {
  constructor({ chat, routes, notice }) {
    Object.assign(this, { chat, routes, notice });
  }

  /** Takes a change by another tab. `record` is null where the conversation is gone, and `newKey` the key under which it goes on. */
  take(key, record, newKey) {
    const { chat } = this;
    const held = chat.held(key);
    if (held === undefined) return;
    if (newKey !== null) return this.routes.replace(key, newKey);
    if (record === null || record.deletedAt !== undefined) return this.#leave(key, held);
    const hasGrown = record.updated > held.record.updated || record.saved?.length !== held.record.saved?.length;
    if (hasGrown && held === chat.current && !this.#isWriting(held)) return this.#drawAgain(key);
    held.title = record.title;
    chat.view.onState();
  }

  /** An answer that is made or not yet saved, or a message that is edited, stays: the next save notices the other tab's. */
  #isWriting({ updated, record }) {
    return this.chat.isAnswering || updated > record.updated || this.chat.thread.list.querySelector(".editor") !== null;
  }

  #drawAgain(key) {
    this.chat.open(key).catch(() => {}); // it may be gone by now
  }

  #leave(key, { title }) {
    this.chat.drop(key);
    this.notice(translate("list.deletedElsewhere", { title }));
  }
}
