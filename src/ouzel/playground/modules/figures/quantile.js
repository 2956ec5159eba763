// Percentiles of a histogram: within a bucket, values count as spread evenly.

/**
 * Returns the value that this share of all values is not above; null where there are none. `buckets` are in the order of
 * their bounds; each has its upper `bound` and the `count` of values up to it.
 */
export function quantileOf(buckets, share) {
  const rank = (buckets.at(-1)?.count ?? 0) * share;
  if (rank === 0) return null;
  const index = buckets.findIndex(({ count }) => count >= rank);
  const { bound, count } = buckets[index];
  const lower = index > 0 ? buckets[index - 1] : { bound: 0, count: 0 };
  if (bound === Infinity) return lower.bound;
  return lower.bound + ((bound - lower.bound) * (rank - lower.count)) / (count - lower.count);
}
