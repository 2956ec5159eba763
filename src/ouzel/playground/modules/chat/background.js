// A response that the server makes in the background: it goes on without this page. So its events can be read again from
// where a connection broke off, or from the first one, and who stops it must say so to the server.

import { ApiError, BROKEN_OFF } from "../api.js";
import { isBusy, isUnreached } from "./tries.js";

const ENDS = ["response.completed", "response.incomplete", "response.failed", "error"];

export function pathOfResponse(id) {
  return `v1/responses/${encodeURIComponent(id)}`;
}

/**
 * Iterates over the events of a response to its end, over as many connections as that takes. It is the response of this
 * id or, where that is null, a new one, whose id `onId` gets. Aborting the signal ends and deletes the response.
 */
export async function* backgroundEvents(api, { body, id = null, signal, tries, mayRepeat, onId }) {
  let events = null;
  let last = -1;
  let isCounted = true; // else nobody knows where to go on
  try {
    if (id === null) {
      events = await tries.run(() => begin(api, body, signal), mayRepeat);
    }
    for (;;) {
      try {
        events ??= await tries.run(() => api.openStream(`${pathOfResponse(id)}?stream=true&starting_after=${last}`, { signal }), isPassing);
        for await (const event of events) {
          if (id === null) onId((id = String(event.response.id)));
          if (event.sequence_number <= last) continue; // it has come before
          tries.reset();
          isCounted = Number.isSafeInteger(event.sequence_number);
          if (isCounted) last = event.sequence_number;
          yield event;
          if (ENDS.includes(event.type)) return;
        }
      } catch (error) {
        if (id === null || !isUnreached(error)) throw error;
      }
      if (id === null || !isCounted) throw new ApiError(0, BROKEN_OFF);
      events = null;
      await tries.waitAfter(new ApiError(0, BROKEN_OFF));
    }
  } finally {
    if (signal.aborted && id !== null) api.deleteUnwatched(pathOfResponse(id));
  }
}

function isPassing(error) {
  return isBusy(error) || isUnreached(error);
}

/** Begins a response. One that is stopped before it has an id is deleted as soon as it has one. */
async function begin(api, body, signal) {
  const connection = new AbortController();
  const opening = open(api, body, connection.signal);
  const stopped = new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  try {
    const { first, rest } = await Promise.race([opening, stopped]);
    signal.addEventListener("abort", () => connection.abort(), { once: true });
    return chain(first, rest);
  } catch (error) {
    if (signal.aborted) removeOnceBegun(api, opening).finally(() => connection.abort());
    throw error;
  }
}

async function open(api, body, signal) {
  const rest = await api.openStream("v1/responses", { body, signal });
  return { first: await rest.next(), rest };
}

async function removeOnceBegun(api, opening) {
  const { first } = await opening.catch(() => ({ first: {} }));
  if (first.value?.response) api.deleteUnwatched(pathOfResponse(first.value.response.id));
}

async function* chain(first, rest) {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
