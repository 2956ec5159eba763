// A WAV file of one channel, which every server reads without a further package.

const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;
const PCM = 1; // the format of samples that are whole numbers
const MAX = 32_767;

/** Returns a file of samples between -1 and 1. `rate` is in Hz. */
export function wavOf(samples, rate, name) {
  const numBytes = samples.length * SAMPLE_BYTES;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + numBytes));
  write(view, 0, "RIFF");
  view.setUint32(4, HEADER_BYTES - 8 + numBytes, true);
  write(view, 8, "WAVEfmt ");
  view.setUint32(16, 16, true); // bytes of the format
  view.setUint16(20, PCM, true);
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * SAMPLE_BYTES, true);
  view.setUint16(32, SAMPLE_BYTES, true);
  view.setUint16(34, 8 * SAMPLE_BYTES, true);
  write(view, 36, "data");
  view.setUint32(40, numBytes, true);
  for (const [index, sample] of samples.entries()) {
    view.setInt16(HEADER_BYTES + index * SAMPLE_BYTES, Math.round(Math.max(-1, Math.min(1, sample)) * MAX), true);
  }
  return new File([view], name, { type: "audio/wav" });
}

function write(view, place, text) {
  for (const [index, letter] of [...text].entries()) view.setUint8(place + index, letter.charCodeAt(0));
}
