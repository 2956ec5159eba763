// The public API of the server that this page came from. A key that it needs is kept in the tab, and nowhere else.

import { eventsOf } from "./event_stream.js";
import { KeptText } from "./storage/kept_text.js";
import { translate } from "./texts/texts.js";

const keptKey = new KeptText("sessionStorage", "ouzel.apiKey");
/** What is said of an answer whose end did not come. */
export const BROKEN_OFF = translate("server.brokeOff");
const UNREACHABLE = translate("server.unreachable");
const MAX_MESSAGE = 2000; // characters
/** The server's root, which a proxy may have put below a prefix. */
export const ROOT = new URL("../../", import.meta.url);

/** The API refused a request, or could not be reached: `status` is 0 then. `retryAfter_s` is null unless the API says it. */
export class ApiError extends Error {
  constructor(status, message, { field = null, retryAfter_s = null } = {}) {
    super(message);
    Object.assign(this, { status, field, retryAfter_s });
  }
}

export class Api {
  /** `askForKey` resolves when there may be another key, and rejects when nobody gives one. */
  constructor(askForKey) {
    this.askForKey = askForKey;
  }

  static get key() {
    return keptKey.value;
  }

  static keepKey(key) {
    keptKey.value = key;
  }

  async get(path) {
    return read(await this.#fetch(path, {}));
  }

  async post(path, body, signal) {
    return read(await this.#fetch(path, posting(body, signal)));
  }

  async delete(path) {
    return read(await this.#fetch(path, { method: "DELETE" }));
  }

  /** Returns the content of a file. */
  async blob(path) {
    return (await this.#fetch(path, {})).blob();
  }

  /** Iterates over the bytes of an answer while they come; aborting the signal ends the request. */
  async *bytes(path, body, signal) {
    const response = await this.#fetch(path, posting(body, signal));
    yield* told(piecesOf(response.body));
  }

  /** Sends a form. `onProgress` is called with the share of it that has been sent; aborting the signal ends it. */
  async upload(path, form, options) {
    return read(await this.#fetch(path, { form, ...options }, sentForm));
  }

  /** Deletes something that nobody waits for, also while the page is closed. */
  deleteUnwatched(path) {
    reached(path, { method: "DELETE", keepalive: true }, Api.key).catch(() => {});
  }

  /** Iterates over the events of a stream; aborting the signal ends the request. */
  async *stream(path, body, signal) {
    yield* await this.openStream(path, { body, signal });
  }

  /** Returns the events of a stream, once the server has accepted the request. Without a body it is a GET. */
  async openStream(path, { body, signal }) {
    return told(eventsOf(await this.#fetch(path, body === undefined ? { signal } : posting(body, signal))));
  }

  async #fetch(path, options, reach = reached) {
    for (;;) {
      const key = Api.key;
      const response = await reach(path, options, key);
      if (response.ok) return response;
      const error = await errorOf(response);
      if (response.status !== 401) throw error;
      if (key === Api.key) await this.askForKey(key ? error.message : "");
    }
  }
}

/** Returns the JSON of an answer. A proxy may answer a request with a page of its own, as to sign in. */
async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    throw error instanceof SyntaxError ? new ApiError(response.status, translate("server.noJson")) : error;
  }
}

/** Iterates over what comes of an answer. A connection that breaks is told as an error of the API. */
async function* told(pieces) {
  try {
    yield* pieces;
  } catch (error) {
    throw error instanceof TypeError ? new ApiError(0, BROKEN_OFF) : error; // browsers have words of their own for it
  }
}

async function* piecesOf(stream) {
  const reader = stream.getReader(); // Safari cannot iterate over a stream
  try {
    for (let piece; !(piece = await reader.read()).done; ) yield piece.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function posting(body, signal) {
  return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal };
}

async function reached(path, options, key) {
  const headers = { accept: "application/json", ...options.headers };
  if (key) headers.authorization = `Bearer ${key}`;
  try {
    return await fetch(new URL(path, ROOT), { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, UNREACHABLE);
  }
}

/** Sends a form as `reached` does. fetch tells nobody how much of a body has been sent. */
function sentForm(path, { form, onProgress, signal }, key) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", new URL(path, ROOT));
    request.setRequestHeader("accept", "application/json");
    if (key) request.setRequestHeader("authorization", `Bearer ${key}`);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
    request.onerror = () => reject(new ApiError(0, UNREACHABLE));
    request.onabort = () => reject(new DOMException("The upload was ended.", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const said = body?.error ?? {};
  const message = sentText(said.message) ?? translate("server.status", { status: String(response.status) });
  return new ApiError(response.status, message, { field: said.param, retryAfter_s: secondsUntil(response.headers.get("retry-after")) });
}

/** Returns a text of the server as far as it is shown; null where it is none. */
export function sentText(text) {
  if (typeof text !== "string") return null;
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE).toWellFormed()}…` : text;
}

/** Reads a header that has seconds or a date; null where it has neither. */
function secondsUntil(text) {
  if (text === null || text.trim() === "") return null;
  const seconds = Number(text);
  const until = Number.isNaN(seconds) ? (Date.parse(text) - Date.now()) / 1000 : seconds;
  return Number.isFinite(until) ? Math.max(until, 0) : null;
}
