// What is known of a source appears beside the footnote that has the focus or under the pointer. There is one such card.
// The pointer can move into it, and Escape closes it.

import { element, fill } from "../dom.js";

const ID = "source-card";
const LEAVE_MS = 150; // in which the pointer may go from a footnote to the card
const GAP_PX = 6;
const MARGIN_PX = 8;

class SourceCard {
  #shownFor = null; // the footnote's link
  #leaving = null;

  constructor() {
    this.element = element("div", { id: ID, role: "tooltip", popover: "manual" });
    this.element.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    this.element.addEventListener("pointerleave", () => this.leave());
    document.querySelector("main").append(this.element); // a landmark
    document.addEventListener("keydown", (event) => this.#press(event), { capture: true });
    document.addEventListener("scroll", (event) => this.#scroll(event), { capture: true, passive: true });
  }

  show(link, { title, host, quote }) {
    clearTimeout(this.#leaving);
    if (this.#shownFor === link) return;
    this.close();
    this.#shownFor = link;
    fill(
      this.element,
      element("strong", { class: "source-title", text: title }),
      host ? element("span", { class: "source-host", text: host }) : null,
      quote ? element("q", { class: "source-quote", text: quote }) : null,
    );
    link.setAttribute("aria-describedby", ID);
    this.element.showPopover();
    this.#place(link);
  }

  /** Closes the card in a moment, unless the pointer comes back. */
  leave() {
    clearTimeout(this.#leaving);
    this.#leaving = setTimeout(() => this.close(), LEAVE_MS);
  }

  close() {
    clearTimeout(this.#leaving);
    this.#shownFor?.removeAttribute("aria-describedby");
    this.#shownFor = null;
    this.element.hidePopover();
  }

  #press(event) {
    if (event.key !== "Escape" || this.#shownFor === null) return;
    event.stopPropagation(); // an answer that is being made goes on
    this.close();
  }

  /** A link that gets the focus is scrolled into view: its card goes with it. */
  #scroll({ target }) {
    if (target === this.element || this.#shownFor === null) return;
    if (document.activeElement === this.#shownFor) this.#place(this.#shownFor);
    else this.close();
  }

  #place(link) {
    const at = link.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const hasRoom = at.bottom + GAP_PX + height + MARGIN_PX < innerHeight;
    const top = hasRoom ? at.bottom + GAP_PX : Math.max(at.top - height - GAP_PX, MARGIN_PX);
    const left = Math.max(MARGIN_PX, Math.min(at.left - width / 2, innerWidth - width - MARGIN_PX));
    this.element.style.setProperty("left", `${left}px`);
    this.element.style.setProperty("top", `${top}px`);
  }
}

let card = null;

export function closeSourceCard() {
  card?.close();
}

/** Shows the card of a source while its link has the focus, or the pointer is over it. */
export function describeBySource(link, source) {
  const show = () => (card ??= new SourceCard()).show(link, source);
  link.addEventListener("pointerenter", show);
  link.addEventListener("focus", show);
  link.addEventListener("pointerleave", () => card.leave());
  link.addEventListener("blur", () => card.close());
}
