// What is shown where the address of the page leads to no conversation.

import { button, byId, element, fill } from "./dom.js";
import { UnknownConversation } from "./storage/library.js";
import { translate } from "./texts/texts.js";

export class LostAddress {
  /** `onAgain` tries the address again, `onNew` begins a conversation. */
  constructor({ onAgain, onNew }) {
    Object.assign(this, { onAgain, onNew });
    this.place = byId("lost");
  }

  /** Says what is wrong. A server that does not answer may do so later. */
  show(error) {
    if (error === null) return this.setShown(false);
    const isUnknown = error instanceof UnknownConversation || error.status === 404;
    fill(
      this.place,
      element("p", { text: isUnknown ? translate("list.unknownAddress") : error.message }),
      element(
        "div",
        { class: "row centred" },
        isUnknown ? null : button(translate("page.tryAgain"), this.onAgain),
        button(translate("list.beginNew"), this.onNew, { class: "primary" }),
      ),
    );
    this.setShown(true);
    byId("welcome").hidden = true;
  }

  setShown(isShown) {
    this.place.hidden = !isShown;
  }
}
