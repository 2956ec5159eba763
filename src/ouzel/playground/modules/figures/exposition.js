// Prometheus' text format: what of it this server writes.

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Returns the samples whose names have the prefix, by name without it: a list of `{ labels, value }` each. */
export function samplesOf(text, prefix) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith(prefix) ? LINE.exec(line) : null;
    if (match === null) continue;
    const name = match[1].slice(prefix.length);
    if (!samples.has(name)) samples.set(name, []);
    samples.get(name).push({ labels: labelsOf(match[2] ?? ""), value: numberOf(match[3]) });
  }
  return samples;
}

function labelsOf(text) {
  return Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, unescaped(value)]));
}

function unescaped(value) {
  return value.replace(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
}

export function numberOf(text) {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}
