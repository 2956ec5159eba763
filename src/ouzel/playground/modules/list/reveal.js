// A hit of a search is opened: the message that has it is scrolled to.

/** `snippet` is as storage/words.js makes it. */
export function revealHit(chat, { hit }) {
  const conversation = chat.current;
  const node = conversation.nodes.find(({ message }) => inOneLine(message.content).includes(inOneLine(hit)));
  if (node === undefined) return; // it has changed since
  if (!conversation.path().includes(node)) chat.show(node);
  chat.thread.reveal(node);
}

function inOneLine(text) {
  return text.replace(/\s+/g, " ").toLowerCase();
}
