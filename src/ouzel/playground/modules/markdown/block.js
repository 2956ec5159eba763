// A block of Markdown: a node of the tree that the parser makes and the views draw.

const CONTAINERS = new Set(["document", "quote", "list", "item", "note"]);

export class Block {
  /** `fields` are what its kind has beside children: `text`, `lines`, `level`, `start` and others. */
  constructor(kind, id, fields = {}) {
    this.kind = kind;
    this.id = id;
    this.children = [];
    this.isTentative = false; // more text may change it
    Object.assign(this, fields);
  }

  /** Tells whether a block of that kind may be a child. */
  holds(kind) {
    if (!CONTAINERS.has(this.kind)) return false;
    return (this.kind === "list") === (kind === "item");
  }

  /** Returns one that can be changed without changing this one; they share closed children. */
  copy() {
    const copy = new Block(this.kind, this.id, this);
    copy.children = [...this.children];
    if (this.lines) copy.lines = [...this.lines];
    copy.isTentative = true;
    return copy;
  }
}
