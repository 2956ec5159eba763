// Which charts there are, and how each is made of the history.

import { translate } from "../texts/texts.js";
import { formats } from "./formats.js";
import { endingName } from "./reading.js";

const MINUTE_S = 60;
const RATE_S = 10;
const PERCENTILES = [50, 95, 99];
const WELL = ["stop", "length", "tool_calls"];

/** Each has a title, what is said below it, a format, and for each series its name and its values, one an entry. */
export const CHARTS = [
  {
    title: "figures.requests",
    note: "figures.requestsNote",
    format: formats.count,
    series: (history) => [gauge(history, translate("figures.running"), "num_requests_running"), gauge(history, translate("figures.waiting"), "num_requests_waiting")],
  },
  {
    title: "figures.tokens",
    note: "figures.tokensNote",
    format: formats.rate,
    series: (history) => {
      const windows = history.windows(RATE_S);
      return [
        over(windows, translate("figures.generated"), (window) => window.rate("generation_tokens")),
        over(windows, translate("figures.promptComputed"), (window) => difference(window, "prompt_tokens", "prompt_tokens_cached")),
        over(windows, translate("figures.promptCached"), (window) => window.rate("prompt_tokens_cached")),
      ];
    },
  },
  latency("figures.timeToFirstToken", "time_to_first_token_seconds"),
  latency("figures.timeBetweenTokens", "inter_token_latency_seconds"),
  latency("figures.timeOfRequests", "e2e_request_latency_seconds"),
  {
    title: "figures.kvCache",
    note: "figures.kvCacheNote",
    format: formats.share,
    series: (history) => [gauge(history, translate("figures.inUse"), "kv_cache_usage_perc")],
  },
  {
    title: "figures.prefixCache",
    note: "figures.prefixCacheNote",
    format: formats.share,
    series: (history) => [share(history, translate("figures.hits"), "prefix_cache_hits", "prefix_cache_queries")],
  },
  {
    title: "figures.outcomes",
    note: "figures.outcomesNote",
    format: formats.count,
    series: outcomes,
  },
  {
    title: "figures.speculation",
    note: "figures.speculationNote",
    format: formats.share,
    series: (history) => [share(history, translate("figures.accepted"), "spec_decode_num_accepted_tokens", "spec_decode_num_draft_tokens")],
  },
];

function latency(title, histogram) {
  return {
    title,
    note: "figures.latencyNote",
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
    count(translate("figures.completed"), good),
    count(translate("figures.failed"), bad),
    count(translate("figures.leftByClient"), [endingName("abort")]),
    count(translate("figures.refused"), ["requests_refused"]),
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
