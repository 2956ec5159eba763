// The messages of the branch that is shown, one below the other. It stays at the end while an answer streams, until a
// person scrolls up. What draws messages is loaded for the first of them.

import { arrange, element } from "../dom.js";
import { loadPart } from "../later.js";
import { translate } from "../texts/texts.js";

const NEAR_PX = 60;

let drawing = null; // the module that draws messages, from the first message on

export class Thread {
  #views = new Map();
  #conversation = null;
  #wanted = null; // the conversation that is shown as soon as messages can be drawn
  #staysAtEnd = true;
  #last = { scrollTop: 0, scrollHeight: 0, clientHeight: 0 }; // of the container, when it was last scrolled

  /** `endButton` leads to the end. */
  constructor(container, actions, endButton) {
    Object.assign(this, { container, actions, endButton });
    this.list = element("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": translate("thread.messages") });
    container.append(this.list);
    container.addEventListener("scroll", () => this.#noticeScroll());
    endButton.addEventListener("click", () => this.toEnd());
  }

  /** Loads what draws messages; without it, nothing of them is shown. */
  async prepare() {
    drawing ??= await loadPart(() => import("./message_view.js"), () => this.#showWanted());
  }

  async #showWanted() {
    this.list.setAttribute("aria-busy", "true");
    await this.prepare();
    this.list.removeAttribute("aria-busy");
    if (drawing !== null) this.show(this.#wanted);
  }

  /** Shows a conversation's branch; views of messages that stay are kept as they are. */
  show(conversation) {
    this.#wanted = conversation;
    if (drawing === null && conversation.nodes.length > 0) return void this.#showWanted();
    if (conversation !== this.#conversation) {
      this.#views.clear();
      drawing?.closeSourceCard();
      this.#staysAtEnd = true;
    }
    this.#conversation = conversation;
    const focused = this.#focused();
    const path = conversation.path();
    const views = path.map((node) => this.#view(node));
    arrange(this.list, views.map((view) => view.element));
    for (const [index, view] of views.entries()) {
      if (view.node === conversation.running) view.showWait(conversation.waiting);
      if (view.node === conversation.running) continue;
      view.settle({ siblings: conversation.siblings(view.node), isLast: index === path.length - 1, answeredBy: conversation.answeredBy, unseen: this.actions.unseenOf(view.node) });
    }
    if (focused !== null && !this.list.contains(document.activeElement)) views[Math.min(focused.index, views.length - 1)]?.focus(focused.label);
    this.followEnd();
  }

  /** Returns the place of the message that has the focus, and what the button is called. */
  #focused() {
    const { activeElement } = document;
    const index = [...this.list.children].findIndex((each) => each.contains(activeElement));
    return index < 0 ? null : { index, label: drawing.labelOf(activeElement) };
  }

  append(node, delta) {
    this.#views.get(node.id)?.append(delta);
    this.followEnd();
  }

  /** Shows or takes away what is said of the wait for another try. */
  showWait({ running, waiting }) {
    if (running !== null) this.#views.get(running.id)?.showWait(waiting);
    this.followEnd();
  }

  /** Draws a message anew, of which something else than before is known. */
  redraw(node) {
    this.#views.delete(node.id);
    this.show(this.#conversation);
  }

  /** Draws messages again after a change of their files. */
  drawFiles() {
    for (const view of this.#views.values()) if (view.node.message.files.length > 0) view.drawFiles();
  }

  followEnd() {
    requestAnimationFrame(() => this.#staysAtEnd && this.toEnd());
  }

  toEnd() {
    this.#staysAtEnd = true;
    // Without messages there are only examples, which begin at the top.
    this.container.scrollTop = this.#views.size > 0 ? this.container.scrollHeight : 0;
    this.#measure(); // a person may scroll up before the event of this comes
    this.endButton.hidden = true;
  }

  /** Scrolls to a message of the branch that is shown, and gives it the focus. */
  reveal(node) {
    if (drawing === null) return;
    this.#staysAtEnd = false;
    const { element: article } = this.#view(node);
    article.scrollIntoView({ block: "start" });
    article.focus({ preventScroll: true });
    this.endButton.hidden = this.#isNearEnd(this.#measure());
  }

  #view(node) {
    if (!this.#views.has(node.id)) this.#views.set(node.id, new drawing.MessageView(node, this.actions));
    return this.#views.get(node.id);
  }

  #noticeScroll() {
    const last = this.#last;
    const { scrollTop, scrollHeight, clientHeight } = this.#measure();
    const isNear = this.#isNearEnd(this.#last);
    // Where there is less to scroll through, as behind a prompt that was long and is sent, the browser scrolls up.
    const isMadeToFit = clientHeight > last.clientHeight || scrollHeight < last.scrollHeight;
    const isPersons = scrollTop < last.scrollTop && !isMadeToFit; // else text came below since the page was scrolled
    if (isNear || isPersons) this.#staysAtEnd = isNear;
    else if (isMadeToFit) this.followEnd();
    this.endButton.hidden = this.#staysAtEnd;
  }

  #isNearEnd({ scrollTop, scrollHeight, clientHeight }) {
    return scrollHeight - scrollTop - clientHeight < NEAR_PX;
  }

  #measure() {
    const { scrollTop, scrollHeight, clientHeight } = this.container;
    return (this.#last = { scrollTop, scrollHeight, clientHeight });
  }
}
