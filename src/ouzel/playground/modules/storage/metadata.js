// What a conversation's metadata tells beside its title and tree. One value has the models that made its answers, and what is
// set for it. A value has little room: where both do not fit, the models go alone, or nothing. Another one has the labels.

import { readValues, setValues } from "../settings/values.js";
import { labelsOfText, labelsText } from "./labels.js";

const KEY = "page";
const LABELS = "labels";
const MAX_VALUE_LENGTH = 512; // the API's
const MAX_KEYS = 16; // the API's; a tree of very many messages needs them all

/** Returns the metadata; `ids` are those of the nodes that the server keeps, in its order. */
export function metadataOf(conversation, ids) {
  const models = modelsOf(conversation, ids);
  const settings = conversation.settings === null ? {} : setValues(conversation.settings);
  const texts = [{ models, settings }, { models }].map((told) => JSON.stringify(told));
  const fitting = texts.find((text) => text.length <= MAX_VALUE_LENGTH);
  return fitting === undefined ? {} : { [KEY]: fitting };
}

/** Returns metadata with the folder and the tags of a conversation in the place of those that it has, if there is room. */
export function withLabels({ [LABELS]: before, ...metadata }, labels) {
  const text = labelsText(labels);
  return text === "" || Object.keys(metadata).length >= MAX_KEYS ? metadata : { ...metadata, [LABELS]: text };
}

/** Gives a conversation what its metadata tells. */
export function takeMetadata(conversation, metadata) {
  conversation.labels = labelsOfText(metadata[LABELS] ?? "");
  const { models = null, settings = null } = parsed(metadata[KEY]);
  takeModels(conversation, models);
  if (settings !== null) conversation.settings = readValues(settings, { isForeign: true }).values; // whoever has the key can write there
}

/** Returns the models that made answers: by the name of each, the places of its answers. */
export function modelsOf(conversation, ids) {
  const models = Object.create(null); // a model may be called constructor
  for (const [place, id] of ids.entries()) {
    const { model } = conversation.node(id).message;
    if (model !== null) (models[model] ??= []).push(place);
  }
  return models;
}

/** Gives answers the names of their models. */
export function takeModels(conversation, models) {
  for (const [name, places] of Object.entries(models ?? {})) {
    for (const place of Array.isArray(places) ? places : []) {
      const said = conversation.nodes[place]?.message;
      if (said?.role === "assistant") said.model = name;
    }
  }
}

function parsed(text) {
  try {
    const told = JSON.parse(text ?? "{}");
    return typeof told === "object" && told !== null ? told : {};
  } catch {
    return {};
  }
}
