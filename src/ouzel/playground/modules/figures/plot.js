// The drawing of a chart: axes, a line for each series, and a mark at the time that is looked at. It knows no units.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 180;
const MARGIN = { top: 10, right: 10, bottom: 22, left: 58 };

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** Where values and times are, in pixels. */
export class Frame {
  constructor(width, { from_s, to_s, top }) {
    Object.assign(this, { width, from_s, to_s, top, height: HEIGHT });
    this.right = width - MARGIN.right;
    this.left = MARGIN.left;
    this.base = HEIGHT - MARGIN.bottom;
  }

  x(time_s) {
    return this.left + ((time_s - this.from_s) / (this.to_s - this.from_s)) * (this.right - this.left);
  }

  y(value) {
    return this.base - (Math.min(value, this.top) / this.top) * (this.base - MARGIN.top);
  }

  /** Returns the time that stands at a pixel. */
  timeAt(x) {
    return this.from_s + ((x - this.left) / (this.right - this.left)) * (this.to_s - this.from_s);
  }
}

/** Returns the nodes of the two axes. `steps` and `times` are `{ at, text }`. */
export function axes(frame, steps, times) {
  const lines = steps.map(({ at }) => line("grid", frame.left, frame.y(at), frame.right, frame.y(at)));
  const values = steps.map(({ at, text }) => label("value-label", frame.left - 8, frame.y(at) + 4, text));
  const moments = times.map(({ at, text }) => label(at === frame.to_s ? "time-label newest" : "time-label", frame.x(at), frame.height - 5, text));
  return [...lines, ...values, ...moments];
}

/** Returns the line of a series; it has gaps where values are null or entries say that there is one. */
export function seriesLine(frame, number, entries, values) {
  let path = "";
  let isDown = false;
  entries.forEach(({ time_s, isAfterGap }, index) => {
    const value = values[index];
    const isDot = !isDown && (values[index + 1] ?? null) === null;
    if (value === null || value === undefined) {
      isDown = false;
      return;
    }
    const move = isDown && !isAfterGap ? "L" : "M";
    path += `${move}${frame.x(time_s).toFixed(1)} ${frame.y(value).toFixed(1)}${isDot ? "h0.01" : ""}`;
    isDown = true;
  });
  return svg("path", { class: `line series-${number}`, d: path });
}

export function line(kind, x1, y1, x2, y2) {
  return svg("line", { class: kind, x1, y1, x2, y2 });
}

export function label(kind, x, y, text) {
  return svg("text", { class: kind, x, y }, text);
}
