// Temml describes a formula as a tree; this makes its elements. Only known elements, attributes and styles come through, with
// bounded lengths, so a formula has no address, no id and no class of the page, whatever its TeX asked for.

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";
const MAX_NODES = 6000;
const MAX_DEPTH = 100; // the browser's layout calls itself for each level
const MAX_EM = 50;
const EM_BY_UNIT = { em: 1, ex: 0.5, pt: 0.1, px: 0.0625, mu: 1 / 18, "%": 0.01 };

const ELEMENTS = new Set(
  (
    "math mrow mi mn mo mtext mspace mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup munder mover " +
    "munderover mmultiscripts mprescripts none mtable mtr mlabeledtr mtd ms"
  ).split(" "),
);
const LENGTHS = new Set("width height depth voffset lspace rspace minsize maxsize linethickness mathsize rowspacing".split(" "));
const WORDS = new Set(
  (
    "display displaystyle scriptlevel mathvariant stretchy fence separator form symmetric largeop movablelimits accent " +
    "accentunder columnalign notation"
  ).split(" "),
);
const COLOURS = new Set(["mathcolor", "mathbackground"]);
const STYLES = new Set(
  (
    "padding padding-left padding-right padding-top padding-bottom margin-left width height left bottom border border-left " +
    "border-right border-top border-bottom color text-align font-weight font-style math-depth transform position display " +
    "justify-content white-space"
  ).split(" "),
);
const COLOUR = /^(?:#[\da-f]{3,8}|[a-z]+)$/i;
const LENGTH = /([+-]?(?:\d+\.?\d*|\.\d+))([a-z%]*)/gi;
const CLASS = /^(?:tml|chr|ff|wbk)-[a-z\d-]+$/;
const OTHER_CLASSES = new Set(
  "menclose upstrike downstrike sout longdiv-top longdiv-arc phasor-bottom phasor-angle circle-pad textcircle actuarial special-fraction".split(" "),
);

/** The TeX asks for more than is drawn. */
export class TooLarge extends Error {}

/** Returns the elements of a tree. Raises TooLarge. */
export function buildMathml(tree) {
  return new Builder().build(tree, 0);
}

class Builder {
  #numNodes = 0;

  build(tree, depth) {
    this.#numNodes += 1;
    if (this.#numNodes > MAX_NODES || depth > MAX_DEPTH) throw new TooLarge("too large");
    if (tree.text !== undefined) return document.createTextNode(tree.text);
    const children = (tree.children ?? []).map((child) => this.build(child, depth + 1));
    if (!ELEMENTS.has(tree.type)) return joined(children);
    const node = document.createElementNS(NAMESPACE, tree.type);
    for (const [name, value] of Object.entries(tree.attributes ?? {})) setAttribute(node, name, String(value));
    for (const [name, value] of Object.entries(tree.style ?? {})) setStyle(node, name, String(value));
    const classes = (tree.classes ?? []).filter((each) => CLASS.test(each) || OTHER_CLASSES.has(each));
    if (classes.length > 0) node.setAttribute("class", classes.join(" "));
    node.append(...children);
    return node;
  }
}

/** Other elements, as links and groups of HTML, give their children. */
function joined(children) {
  const fragment = document.createDocumentFragment();
  fragment.append(...children);
  return fragment;
}

function setAttribute(node, name, value) {
  if (name === "style") {
    for (const rule of value.split(";").filter(Boolean)) setStyle(node, ...rule.split(":").map((part) => part.trim()));
  } else if (LENGTHS.has(name) && isShort(value)) node.setAttribute(name, value);
  else if (WORDS.has(name) && /^[\w\s+-]*$/.test(value)) node.setAttribute(name, value);
  else if (COLOURS.has(name) && COLOUR.test(value)) node.setAttribute(name, value === "black" ? "currentcolor" : value);
}

function setStyle(node, name, value = "") {
  const property = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  if (STYLES.has(property) && /^[\w\s.#%+-]*$|^scaleX\(-1\)$/.test(value) && isShort(value)) node.style.setProperty(property, value);
}

/** Tells whether all lengths in a value are such that a formula keeps to its place. */
function isShort(value) {
  return [...value.matchAll(LENGTH)].every(([, number, unit]) => Math.abs(Number(number)) * (EM_BY_UNIT[unit] ?? 1) <= MAX_EM);
}
