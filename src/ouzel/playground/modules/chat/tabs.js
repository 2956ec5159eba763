// One tab makes the answer of a conversation; the others wait for its end. Browsers have locks for this on pages that
// came over TLS or from this machine. Elsewhere each tab is alone.

const PREFIX = "ouzel.answer.";

/** Does work that one tab at a time may do for a conversation. Returns false where another one does it now. */
export async function claim(key, work) {
  if (navigator.locks === undefined) {
    await work();
    return true;
  }
  return navigator.locks.request(PREFIX + key, { ifAvailable: true }, async (lock) => {
    if (lock !== null) await work();
    return lock !== null;
  });
}

/** Keeps other tabs from it until a promise resolves. */
export function hold(key, ended) {
  navigator.locks?.request(PREFIX + key, () => ended);
}

/** Resolves when no tab does that work any more. */
export async function whenFree(key) {
  await navigator.locks?.request(PREFIX + key, () => {});
}
