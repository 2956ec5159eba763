// What one answer of /metrics says, as numbers by name: those that go up and down, and those that only grow.
// Models and engines count together; of shares and ages the greatest is shown.

import { translate } from "../texts/texts.js";
import { numberOf, samplesOf } from "./exposition.js";
import { totalsOf } from "./totals.js";

const PREFIX = "ouzel_";
const STARTED = /^process_start_time_seconds (\S+)$/m;
const GAUGES = ["num_requests_running", "num_requests_waiting"];
const GREATEST = ["kv_cache_usage_perc", "engine_step_age_seconds"];
const COUNTERS = [
  "prompt_tokens",
  "prompt_tokens_cached",
  "generation_tokens",
  "prefix_cache_queries",
  "prefix_cache_hits",
  "requests_refused",
  "spec_decode_num_draft_tokens",
  "spec_decode_num_accepted_tokens",
  "engine_restarts",
];
const HISTOGRAMS = ["time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds"];

/**
 * Returns `{ gauges, counters }`, two maps; a bucket of a histogram is a counter named after it and its bound. `totals`
 * are the counts by model (totals.js), and `started_s` is the start of the server, null where it does not say so.
 */
export function readingOf(text) {
  const samples = samplesOf(text, PREFIX);
  if (!samples.has("generation_tokens_total")) throw new Error(translate("figures.noneInAnswer"));
  const counters = new Map(COUNTERS.map((name) => [name, sum(samples.get(`${name}_total`))]));
  const count = (name, value) => counters.set(name, (counters.get(name) ?? 0) + value);
  for (const { labels, value } of samples.get("request_success_total") ?? []) {
    count(endingName(labels.finished_reason), value);
  }
  for (const name of HISTOGRAMS) {
    for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) count(bucketName(name, labels.le), value);
  }
  const gauges = new Map(GAUGES.map((name) => [name, sum(samples.get(name))]));
  for (const name of GREATEST) gauges.set(name, Math.max(0, ...(samples.get(name) ?? []).map(({ value }) => value)));
  const started = STARTED.exec(text);
  return { gauges, counters, totals: totalsOf(samples), started_s: started === null ? null : Number(started[1]) };
}

export function endingName(reason) {
  return `ended ${reason}`;
}

/** Returns the bounds of a histogram with the names of its buckets' counters, from the lowest on. */
export function bucketsOf(counters, histogram) {
  const start = bucketName(histogram, "");
  const names = [...counters.keys()].filter((name) => name.startsWith(start));
  const buckets = names.map((name) => ({ name, bound: numberOf(name.slice(start.length)) }));
  return buckets.sort((one, other) => one.bound - other.bound);
}

function bucketName(histogram, bound) {
  return `${histogram} <= ${bound}`;
}

function sum(samples) {
  return (samples ?? []).reduce((total, { value }) => total + value, 0);
}
