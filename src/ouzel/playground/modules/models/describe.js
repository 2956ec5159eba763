// What the server says of a model, in words.

import { sizeText } from "../files/names.js";
import { formatNumber, translate } from "../texts/texts.js";

const ABILITIES = {
  chat: "models.chats",
  tools: "models.callsTools",
  reasoning: "models.reasons",
  vision: "models.seesPictures",
  completion: "models.completes",
  embedding: "models.embeds",
  rerank: "models.ranks",
  transcription: "models.transcribes",
};
const STATES = {
  absent: "models.isAbsent",
  on_disk: "models.isOnDisk",
  loading: "models.isLoading",
  unloading: "models.isUnloading",
  ready: "models.isBusy",
  idle: "models.isLoaded",
  failed: "models.hasFailed",
};
const IN_MEMORY = ["ready", "idle"];

/** Tells whether a model is in memory. A server whose models all stay there does not say so. */
export function isInMemory({ state }) {
  return state === null || IN_MEMORY.includes(state);
}

/** Returns what a model can do, one text for each. */
export function abilityTexts({ capabilities }) {
  return Object.keys(ABILITIES).filter((name) => capabilities.has(name)).map((name) => translate(ABILITIES[name]));
}

export function stateText({ state }) {
  return state === null ? translate("models.isLoaded") : translate(Object.hasOwn(STATES, state) ? STATES[state] : "models.isOnDisk");
}

/** Returns the figures of a model: its context, its size, and whether it fits the memory that `limit` models have. */
export function figureTexts({ contextLength, diskBytes, memoryBytes }, limit) {
  return [
    contextLength === null ? "" : translate("models.context", { count: contextLength, number: formatNumber(contextLength) }),
    diskBytes === null ? "" : translate("models.onDisk", { size: sizeText(diskBytes) }),
    memoryBytes === null ? "" : translate("models.inMemory", { size: sizeText(memoryBytes) }),
    fitText(memoryBytes ?? diskBytes, limit),
  ].filter(Boolean);
}

function fitText(numBytes, limit) {
  if (numBytes === null || limit === null) return "";
  const values = { limit: sizeText(limit) };
  return numBytes <= limit ? translate("models.fits", values) : translate("models.doesNotFit", values);
}
