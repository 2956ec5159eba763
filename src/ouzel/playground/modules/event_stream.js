// Server-sent events as the HTML standard defines them, as far as this API sends them: comments and data.

const END = "[DONE]";
const MAX_TASK_MS = 12; // many events may come at once: between them the page hears clicks and keys

/** Iterates over the JSON of each event of a response's body, to the one that says that it is over. */
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let pieces = []; // that came behind it, of an event that has not ended
  let begun = performance.now();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      pieces.push(value);
      if (!/[\r\n]\n/.test((pieces.at(-2) ?? rest).slice(-1) + value)) continue; // to read a long event for each piece takes long
      const blocks = (rest + pieces.join("")).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      pieces = [];
      for (const data of blocks.map(dataOf)) {
        if (data === END) return;
        if (performance.now() - begun > MAX_TASK_MS) {
          await new Promise((resolve) => setTimeout(resolve));
          begun = performance.now();
        }
        if (data) yield JSON.parse(data);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trimStart()).join("\n");
}
