// What the server has counted since its start, by model.

import { numberOf } from "./exposition.js";
import { quantileOf } from "./quantile.js";

const HISTOGRAMS = { firstToken: "time_to_first_token_seconds", betweenTokens: "inter_token_latency_seconds" };
const COUNTERS = { answers: "request_success_total", promptTokens: "prompt_tokens_total", cachedTokens: "prompt_tokens_cached_total", generatedTokens: "generation_tokens_total" };

/** The counts of one model, or of all models where `isCounted` accepts each. */
class Totals {
  constructor(samples, model, isCounted) {
    this.model = model;
    const counted = (name) => (samples.get(name) ?? []).filter(({ labels }) => isCounted(labels.model_name));
    for (const [property, name] of Object.entries(COUNTERS)) this[property] = counted(name).reduce((sum, { value }) => sum + value, 0);
    for (const [property, name] of Object.entries(HISTOGRAMS)) this[property] = bucketsFrom(counted(`${name}_bucket`));
  }

  /** Returns the value of a histogram that this share of all values is not above; null where there are none. */
  quantile(histogram, share) {
    return quantileOf(this[histogram], share);
  }
}

/** Returns the counts of each model, and first, where there are several, of all together (`model` is null). */
export function totalsOf(samples) {
  const names = [...new Set((samples.get(COUNTERS.generatedTokens) ?? []).map(({ labels }) => labels.model_name))].sort();
  const each = names.map((name) => new Totals(samples, name, (model) => model === name));
  return names.length > 1 ? [new Totals(samples, null, () => true), ...each] : each;
}

function bucketsFrom(samples) {
  const counts = new Map();
  for (const { labels, value } of samples) {
    const bound = numberOf(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return [...counts].map(([bound, count]) => ({ bound, count })).sort((one, other) => one.bound - other.bound);
}
