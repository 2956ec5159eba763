// The readings of the last ten minutes. A counter that fell was begun anew, by a server that was: what it says then is
// what came since. So increases are taken between readings, and their sums only grow.

import { quantileOf } from "./quantile.js";
import { bucketsOf } from "./reading.js";

export const MAX_AGE_S = 600;
const MAX_STEP_S = 7; // readings further apart have a gap between them: nobody was there to read

export class History {
  /** Each has `time_s`, `gauges`, `sums` (of increases since the first reading), `isAfterGap` and `isAfterRestart`. */
  entries = [];
  #counters = null; // of the newest reading, as the server wrote them

  add(time_s, { gauges, counters }) {
    const last = this.entries.at(-1);
    const before = this.#counters ?? counters;
    const isAfterRestart = [...before].some(([name, value]) => (counters.get(name) ?? 0) < value);
    const sums = new Map(last?.sums);
    for (const [name, value] of counters) {
      const start = isAfterRestart ? 0 : (before.get(name) ?? 0);
      sums.set(name, (sums.get(name) ?? 0) + value - start);
    }
    const isAfterGap = last !== undefined && time_s - last.time_s > MAX_STEP_S;
    this.entries.push({ time_s, gauges, sums, isAfterGap, isAfterRestart });
    this.#counters = counters;
    while (time_s - this.entries[0].time_s > MAX_AGE_S) this.entries.shift();
  }

  /** Returns for each entry what came to that time in so many seconds: a function of counters' names. */
  windows(length_s) {
    let first = 0;
    return this.entries.map((entry) => {
      while (this.entries[first + 1]?.time_s <= entry.time_s - length_s) first += 1;
      return new Window(this.entries[first], entry);
    });
  }
}

/** What came between two entries. */
class Window {
  constructor(from, to) {
    this.from = from;
    this.to = to;
  }

  get length_s() {
    return this.to.time_s - this.from.time_s;
  }

  increase(name) {
    return (this.to.sums.get(name) ?? 0) - (this.from.sums.get(name) ?? 0);
  }

  /** Returns how many came in a second; null where the window has no length. */
  rate(name) {
    return this.length_s > 0 ? this.increase(name) / this.length_s : null;
  }

  /** Returns which share of some are others; null where there are none. */
  share(part, whole) {
    const total = this.increase(whole);
    return total > 0 ? this.increase(part) / total : null;
  }

  /** Returns the value of a histogram that this share of all values is not above; null where there are none. */
  quantile(histogram, share) {
    const buckets = bucketsOf(this.to.sums, histogram);
    return quantileOf(buckets.map(({ name, bound }) => ({ bound, count: this.increase(name) })), share);
  }
}
