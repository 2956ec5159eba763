// A server that is away: the page opens with what the browser keeps, and looks for the server by itself.

import { ROOT } from "../api.js";
import { Server } from "../server.js";
import { translate } from "../texts/texts.js";

const AWAY = [0, 502, 503, 504]; // of an ApiError: nothing answered, or a proxy that found nobody
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 15_000;

/** The model of a server that is away. It can do nothing, and says why. */
class AbsentModel {
  name = "";
  contextLength = 0;
  capabilities = new Set();
  inputs = new Set();
  parent = null;
  state = null;
  failure = null;
  diskBytes = null;
  memoryBytes = null;
  completes = false;
  fillsIn = false;
  seesImages = false;
  readsPdfs = false;

  get whyNoChat() {
    return translate("offline.serverAway");
  }

  async defaults() {
    return {};
  }
}

export function isAway(error) {
  return AWAY.includes(error.status);
}

/** Returns a server in the place of the one that is away. */
export function absentServer() {
  const index = { version: "", keeps_conversations: false, max_file_bytes: null, searches_files: false, max_logprobs: 0, demo_models: [] };
  return new Server(index, [new AbsentModel()], []);
}

/** Looks for the server until it answers, and opens the page again then. */
export async function waitForServer() {
  for (let waitMs = FIRST_WAIT_MS; !(await answers()); waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) await pause(waitMs);
  location.reload();
}

/** Tells whether the server answers now. */
export async function answers() {
  try {
    const response = await fetch(ROOT, { headers: { accept: "application/json" }, cache: "no-store" });
    return response.ok;
  } catch {
    return false;
  }
}

/** Waits, but no longer than until the network comes back or a person looks at the page again. */
function pause(waitMs) {
  return new Promise((resolve) => {
    const wakes = new AbortController();
    const wake = () => {
      clearTimeout(timer);
      wakes.abort();
      resolve();
    };
    const timer = setTimeout(wake, waitMs);
    addEventListener("online", wake, { signal: wakes.signal });
    document.addEventListener("visibilitychange", () => !document.hidden && wake(), { signal: wakes.signal });
  });
}
