// Graphs are placed from above to below. A turn gives these places the direction of the graph.

export class Turn {
  constructor(direction) {
    this.isAcross = direction === "LR" || direction === "RL";
    this.sign = direction === "BT" || direction === "RL" ? -1 : 1;
  }

  size({ width, height }) {
    return this.isAcross ? { width: height, height: width } : { width, height };
  }

  point({ x, y }) {
    return this.isAcross ? { x: y * this.sign, y: x } : { x, y: y * this.sign };
  }

  /** Returns the place that `point` turns to this one. */
  turnBack({ x, y }) {
    return this.isAcross ? { x: y, y: x * this.sign } : { x, y: y * this.sign };
  }

  area(box) {
    return { ...this.point(box), ...this.size(box) };
  }
}

/** Returns the sides of the smallest area around `areas`, each with its middle and its size. */
export function boundsOf(areas) {
  return {
    left: Math.min(...areas.map(({ x, width }) => x - width / 2)),
    right: Math.max(...areas.map(({ x, width }) => x + width / 2)),
    top: Math.min(...areas.map(({ y, height }) => y - height / 2)),
    bottom: Math.max(...areas.map(({ y, height }) => y + height / 2)),
  };
}
