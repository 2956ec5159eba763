// Anthropic's package and the `ai` and `@ai-sdk/anthropic` that Node 20 gets: `ROOT=http://… node anthropic_javascript.mjs`.
import assert from "node:assert";
import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

const model = "ouzel";
const answer = "The temperature is 21 and the condition is sunny.";
const weather = { temperature: 21, condition: "sunny" };
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const description = "Get the current weather";
const question = { role: "user", content: "What is the weather in Paris?" };
const textOf = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

// Anthropic's package: what it sends is looked at.
const sent = [];
const client = new Anthropic({
  baseURL: process.env.ROOT,
  apiKey: "none",
  maxRetries: 0,
  fetch: (url, init) => {
    sent.push(JSON.parse(init.body));
    return fetch(url, init);
  },
});
const sentThreads = () => sent.splice(0).map((body) => body.thread?.type);
const getWeather = betaTool({
  name: "get_weather",
  description,
  inputSchema: city,
  run: () => JSON.stringify(weather),
});
const fields = { model, max_tokens: 100 };

const runner = client.beta.messages.toolRunner({ ...fields, messages: [question], tools: [getWeather] });
assert.equal(textOf(await runner.runUntilDone()), answer);
assert.deepEqual(sentThreads(), ["create", "continue"]);

const texts = [];
for await (const stream of client.beta.messages.toolRunner({ ...fields, messages: [question], tools: [getWeather], stream: true }))
  texts.push(textOf(await stream.finalMessage()));
assert.equal(texts.at(-1), answer);
assert.deepEqual(sentThreads(), ["create", "continue"]);

const thread = client.beta.messages.thread({ ...fields, tools: [getWeather] });
const asked = await thread.send([question]);
const [call] = asked.content.filter((block) => block.type === "tool_use");
assert.deepEqual(call.input, { city: "Paris" });
const result = { type: "tool_result", tool_use_id: call.id, content: JSON.stringify(weather) };
assert.equal(textOf(await thread.stream([{ role: "user", content: [result] }]).finalMessage()), answer);
assert.deepEqual(sentThreads(), ["create", "continue"]);

const gone = { type: "continue", previous_message_id: "msg_gone" };
await assert.rejects(
  client.beta.messages.create({ ...fields, messages: [question], thread: gone }),
  (error) => error.status === 404 && error.error.error.details.error_code === "thread_not_found",
);

// Vercel's `ai`, whole and streamed.
const anthropic = createAnthropic({ baseURL: `${process.env.ROOT}/v1`, apiKey: "none" });
const settings = { model: anthropic(model), maxRetries: 0, maxOutputTokens: 300, temperature: 0 };
const tools = { get_weather: tool({ description, inputSchema: jsonSchema(city), execute: async () => weather }) };

const plain = await generateText({ ...settings, prompt: "Hello!" });
const streamedPlain = streamText({ ...settings, prompt: "Hello!" });
let streamed = "";
for await (const piece of streamedPlain.textStream) streamed += piece;
assert.ok(plain.text);
assert.equal(streamed, plain.text);

const withTools = { ...settings, tools, stopWhen: stepCountIs(3), messages: [question] };
const generated = await generateText(withTools);
assert.equal(generated.text, answer);
assert.deepEqual(generated.steps[0].toolCalls.map((each) => [each.toolName, each.input]), [["get_weather", { city: "Paris" }]]);
streamed = "";
for await (const piece of streamText(withTools).textStream) streamed += piece;
assert.equal(streamed, answer);

// Its tools of Anthropic's own types, and edits of the context, whose account it reads back.
let command;
const bash = anthropic.tools.bash_20250124({
  execute: async (input) => {
    command = input.command;
    return "done";
  },
});
const none = { type: "tool_uses", value: 0 };
const contextManagement = { edits: [{ type: "clear_tool_uses_20250919", trigger: none, keep: none }] };
const edited = await generateText({
  ...settings,
  tools: { bash, ...tools },
  toolChoice: { type: "tool", toolName: "bash" },
  maxOutputTokens: 1000,
  prompt: "Hello!",
  providerOptions: { anthropic: { contextManagement } },
});
assert.equal(typeof command, "string");
assert.deepEqual(edited.providerMetadata.anthropic.contextManagement, { appliedEdits: [] });
