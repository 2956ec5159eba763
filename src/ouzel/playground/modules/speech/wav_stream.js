// Reads a WAV file of 16-bit integers and one channel while it arrives. Its sizes are not known yet, and are not read.

const HEADER_BYTES = 44;
const RATE_AT = 24;
const SAMPLE_BYTES = 2;
const SCALE = 32_768;

/** Iterates over the samples in pieces of the file, each time as many as have come: `{ samples, rate }`, the rate in Hz. */
export async function* samplesOf(pieces) {
  let rate = null;
  let rest = new Uint8Array();
  for await (const piece of pieces) {
    rest = joined(rest, piece);
    if (rate === null) {
      if (rest.length < HEADER_BYTES) continue;
      rate = viewOf(rest).getUint32(RATE_AT, true);
      rest = rest.subarray(HEADER_BYTES);
    }
    const numBytes = rest.length - (rest.length % SAMPLE_BYTES);
    if (numBytes > 0) yield { samples: floatsOf(rest.subarray(0, numBytes)), rate };
    rest = rest.slice(numBytes);
  }
}

function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function floatsOf(bytes) {
  const view = viewOf(bytes);
  return Float32Array.from({ length: bytes.length / SAMPLE_BYTES }, (_, index) => view.getInt16(index * SAMPLE_BYTES, true) / SCALE);
}

function viewOf({ buffer, byteOffset, byteLength }) {
  return new DataView(buffer, byteOffset, byteLength);
}
