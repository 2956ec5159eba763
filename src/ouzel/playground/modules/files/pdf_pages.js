// The number of pages of a PDF, as far as it can be found without reading all of the file's structure.

const MAX_BYTES = 32_000_000;
const MAX_STREAMS = 200;
const MAX_UNPACKED_BYTES = 8_000_000; // of all streams: a small file can hold gigabytes
const PIECE_BYTES = 2048; // which are unpacked in one go, to a thousand times as many
const REACH = 20_000; // characters between the type of a node and its number of pages, with a list of its children
const LINEARIZED = /\/Linearized\b[^<>]{0,200}?\/N\s+(\d{1,7})/;
const NODE = /\/Type\s{0,9}\/Pages\b/g;
const COUNT = /\/Count\s{1,9}(\d{1,7})\b/g;
const PACKED = /\/Type\s{0,9}\/ObjStm\b/g;

/** Returns the number of pages, or null where it is not found. */
export async function numPagesOf(file) {
  if (file.size > MAX_BYTES) return null;
  const bytes = new Uint8Array(await file.arrayBuffer());
  const text = new TextDecoder("latin1").decode(bytes);
  const told = LINEARIZED.exec(text.slice(0, 1024));
  if (told !== null) return Number(told[1]);
  let largest = largestCount(text); // the root of the tree counts the pages of all others
  const packed = [...text.matchAll(PACKED)].slice(0, MAX_STREAMS);
  let left = MAX_UNPACKED_BYTES;
  for (const { index } of packed) {
    if (left <= 0) break;
    const objects = await unpacked(bytes, text, index, left);
    left -= objects.length;
    largest = Math.max(largest, largestCount(objects));
  }
  return largest > 0 ? largest : null;
}

/** Returns the largest number of pages that a node of the tree has. A node's number is the one nearest to its type. */
function largestCount(text) {
  const counts = [...text.matchAll(COUNT)].map((found) => ({ at: found.index, number: Number(found[1]) }));
  let largest = 0;
  let place = 0;
  for (const { index } of text.matchAll(NODE)) {
    while (place + 1 < counts.length && Math.abs(counts[place + 1].at - index) <= Math.abs(counts[place].at - index)) place += 1;
    const nearest = counts[place];
    if (nearest !== undefined && Math.abs(nearest.at - index) < REACH) largest = Math.max(largest, nearest.number);
  }
  return largest;
}

/** Returns the objects of the stream whose dictionary is at `index`: about as many bytes of them as `limit`, at most. */
async function unpacked(bytes, text, index, limit) {
  const start = text.indexOf("stream", index) + "stream".length;
  const end = text.indexOf("endstream", start);
  if (end < 0 || start - index > REACH) return "";
  const from = text[start] === "\r" ? start + 2 : start + 1;
  const reader = inPieces(bytes.subarray(from, end)).pipeThrough(new DecompressionStream("deflate")).getReader();
  const decoder = new TextDecoder("latin1");
  let found = "";
  try {
    for (let piece = await reader.read(); !piece.done && found.length < limit; piece = await reader.read()) {
      found += decoder.decode(piece.value, { stream: true });
    }
  } catch {
    // Bytes behind the end of the stream, or another compression: what came until then is looked at.
  }
  reader.cancel().catch(() => {});
  return found;
}

function inPieces(bytes) {
  let place = 0;
  return new ReadableStream({
    pull(controller) {
      if (place >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(place, place + PIECE_BYTES));
      place += PIECE_BYTES;
    },
  });
}
