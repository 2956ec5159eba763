// Vercel's `ai` with each of its providers that can speak to the server, and `openai`: `ROOT=http://… node javascript.mjs`.
import assert from "node:assert";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";

const access = { baseURL: `${process.env.ROOT}/v1`, apiKey: "none" };
const text = { type: "string" };
const integer = { type: "integer" };
const tools = {
  get_weather: tool({
    description: "Get the current weather",
    inputSchema: jsonSchema({ type: "object", properties: { city: text }, required: ["city"] }),
    execute: async () => ({ temperature: 21, condition: "sunny" }),
  }),
  add: tool({
    description: "Add two numbers",
    inputSchema: jsonSchema({ type: "object", properties: { a: integer, b: integer }, required: ["a", "b"] }),
    execute: async ({ a, b }) => a + b,
  }),
};
const answer = "The temperature is 21 and the condition is sunny.";

async function usesToolsInTwoTurns(model, openai) {
  const settings = { model, tools, stopWhen: stepCountIs(3), maxRetries: 0, maxOutputTokens: 300, temperature: 0 };
  const question = (city) => ({ role: "user", content: `What is the weather in ${city}?` });
  const first = await generateText({ ...settings, messages: [question("Paris")], providerOptions: { openai } });
  assert.equal(first.text, answer);
  assert.deepEqual(first.steps[0].toolCalls.map((call) => [call.toolName, call.input]), [["get_weather", { city: "Paris" }]]);
  const messages = [question("Paris"), ...first.response.messages, question("Rome")];
  const second = streamText({ ...settings, messages, providerOptions: { openai } });
  let streamed = "";
  for await (const piece of second.textStream) streamed += piece;
  assert.equal(streamed, answer);
  assert.equal((await second.steps).length, 2);
}

const openai = createOpenAI(access);
await usesToolsInTwoTurns(openai.chat("ouzel"), {});
await usesToolsInTwoTurns(openai.responses("ouzel"), {});
await usesToolsInTwoTurns(openai.responses("ouzel"), { store: false, forceReasoning: true });
await usesToolsInTwoTurns(createOpenAICompatible({ name: "ouzel", ...access })("ouzel"), {});
await usesToolsInTwoTurns(createAnthropic(access)("ouzel"), {});

const client = new OpenAI({ ...access, maxRetries: 0 });
const messages = [{ role: "user", content: "Hello!" }];
const whole = (await client.chat.completions.create({ model: "ouzel", messages, temperature: 0 })).choices[0].message;
assert.equal(whole.reasoning_content, null);
let streamed = "";
for await (const chunk of await client.chat.completions.create({ model: "ouzel", messages, temperature: 0, stream: true }))
  streamed += chunk.choices[0]?.delta.content ?? "";
assert.equal(streamed, whole.content);
