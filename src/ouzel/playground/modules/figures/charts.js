// Which charts there are, and how each is made of the history.

import { formats } from "./formats.js";
import { endingName } from "./reading.js";

const MINUTE_S = 60;
const RATE_S = 10;
const PERCENTILES = [50, 95, 99];
const WELL = ["stop", "length", "tool_calls"];

/** Each has a title, what is said below it, a format, and for each series its name and its values, one an entry. */
export const CHARTS = [
  {
    title: "Requests",
    note: "Answers in the batch, and answers that wait for a place in the batch.",
    format: formats.count,
    series: (history) => [gauge(history, "Running", "num_requests_running"), gauge(history, "Waiting", "num_requests_waiting")],
  },
  {
    title: "Tokens",
    note: "Per second, over the last ten seconds.",
    format: formats.rate,
    series: (history) => {
      const windows = history.windows(RATE_S);
      return [
        over(windows, "Generated", (window) => window.rate("generation_tokens")),
        over(windows, "Prompt, computed", (window) => difference(window, "prompt_tokens", "prompt_tokens_cached")),
        over(windows, "Prompt, from the cache", (window) => window.rate("prompt_tokens_cached")),
      ];
    },
  },
  latency("Time to first token", "time_to_first_token_seconds"),
  latency("Time between tokens", "inter_token_latency_seconds"),
  latency("Time of whole requests", "e2e_request_latency_seconds"),
  {
    title: "KV cache in use",
    note: "Share of the cache that running requests use.",
    format: formats.share,
    series: (history) => [gauge(history, "In use", "kv_cache_usage_perc")],
  },
  {
    title: "Prefix cache",
    note: "Share of prompt tokens found in the prefix cache, over the last minute.",
    format: formats.share,
    series: (history) => [share(history, "Hits", "prefix_cache_hits", "prefix_cache_queries")],
  },
  {
    title: "Outcomes",
    note: "Answers that ended in the last minute, and requests that were refused with 429.",
    format: formats.count,
    series: outcomes,
  },
  {
    title: "Speculation",
    note: "Share of proposed tokens that were accepted, over the last minute.",
    format: formats.share,
    series: (history) => [share(history, "Accepted", "spec_decode_num_accepted_tokens", "spec_decode_num_draft_tokens")],
  },
];

function latency(title, histogram) {
  return {
    title,
    note: "Percentiles of the last minute.",
    format: formats.seconds,
    series: (history) => {
      const windows = history.windows(MINUTE_S);
      return PERCENTILES.map((each) => over(windows, `p${each}`, (window) => window.quantile(histogram, each / 100)));
    },
  };
}

function outcomes(history) {
  const windows = history.windows(MINUTE_S);
  const names = [...(history.entries.at(-1)?.sums.keys() ?? [])].filter((name) => name.startsWith(endingName("")));
  const good = WELL.map(endingName);
  const bad = names.filter((name) => !good.includes(name) && name !== endingName("abort"));
  const count = (label, counters) => over(windows, label, (window) => counters.reduce((sum, name) => sum + window.increase(name), 0));
  return [
    count("Completed", good),
    count("Failed", bad),
    count("Left by the client", [endingName("abort")]),
    count("Refused", ["requests_refused"]),
  ];
}

function gauge(history, label, name) {
  return { label, values: history.entries.map(({ gauges }) => gauges.get(name)) };
}

function share(history, label, part, whole) {
  return over(history.windows(MINUTE_S), label, (window) => window.share(part, whole));
}

function over(windows, label, valueOf) {
  return { label, values: windows.map(valueOf) };
}

function difference(window, whole, part) {
  return window.length_s > 0 ? window.rate(whole) - window.rate(part) : null;
}
