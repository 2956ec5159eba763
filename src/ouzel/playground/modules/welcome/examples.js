// Examples for a first question, each for something that a model may be able to do. An example sets what it needs.

import { PYTHON } from "../server.js";
import { translate } from "../texts/texts.js";

const MAX_SHOWN = 3;
const CITY_SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, country: { type: "string" }, inhabitants: { type: "integer" } },
  required: ["city", "country", "inhabitants"],
  additionalProperties: false,
};
const RESET = { hasSchema: false, builtinTools: [], reasoning: "" };

/** `fits` tells by model and server whether the example can be shown, and `values` are settings that it needs. */
const EXAMPLES = [
  { name: "chat", fits: (model) => model.capabilities.has("chat"), values: {} },
  { name: "picture", fits: (model) => model.seesImages, values: {}, needsFile: true },
  { name: "python", fits: (model, server) => model.capabilities.has("tools") && server.runsPython, values: { hostedTools: [PYTHON] } },
  { name: "tools", fits: (model) => model.capabilities.has("tools"), values: { builtinTools: ["calculator"], runsBuiltinTools: true } },
  { name: "reasoning", fits: (model) => model.capabilities.has("reasoning"), values: { reasoning: "on" } },
  { name: "schema", fits: (model) => model.capabilities.has("chat"), values: { hasSchema: true, schema: JSON.stringify(CITY_SCHEMA, null, 2) } },
];

/** Returns the examples for a model: what it is called, the question, and the settings. */
export function examplesOf(model, server) {
  const fitting = EXAMPLES.filter(({ fits }) => fits(model, server)).slice(0, MAX_SHOWN);
  return fitting.map(({ name, values, needsFile = false }) => ({
    label: translate(`welcome.${name}.label`),
    question: translate(`welcome.${name}.question`),
    values: { ...RESET, ...values },
    needsFile,
  }));
}
