// Tools that run in the browser, to try tool calls with: none of them reads or changes anything.

import { calculate } from "./calculator.js";

const TOOLS = [
  {
    name: "clock",
    description: "Tells the current date and time.",
    parameters: {
      type: "object",
      properties: { time_zone: { type: "string", description: "An IANA time zone, as Europe/Berlin." } },
    },
    run: ({ time_zone: timeZone }) => {
      const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long", timeZone: timeZone || undefined }); // models send empty ones, too
      return format.format(new Date());
    },
  },
  {
    name: "calculator",
    description: "Computes an arithmetic expression with + - * / % **, parentheses, sqrt, abs, round, floor, ceil, log, exp.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string", description: "For example 2 * (3 + 4)." } },
      required: ["expression"],
    },
    run: ({ expression }) => String(calculate(String(expression ?? ""))),
  },
];

export const BUILTIN_NAMES = TOOLS.map((tool) => tool.name);

/** Returns the definitions, as requests have them, of the tools of these names. */
export function builtinDefinitions(names) {
  return TOOLS.filter((tool) => names.includes(tool.name)).map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description, parameters },
  }));
}

/** Runs a call, and returns its result, which may say what is wrong with the call; null where it is none of ours. */
export function runBuiltin({ name, arguments: text }) {
  const tool = TOOLS.find((each) => each.name === name);
  if (tool === undefined) return null;
  try {
    return tool.run(JSON.parse(text || "{}"));
  } catch (error) {
    return `Error: ${error.message}`;
  }
}
