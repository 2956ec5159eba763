// Arithmetic without eval, which the page's policy forbids: a parser by precedence over numbers and operators.

const FUNCTIONS = { abs: Math.abs, sqrt: Math.sqrt, round: Math.round, floor: Math.floor, ceil: Math.ceil, log: Math.log, exp: Math.exp };
const CONSTANTS = { pi: Math.PI, e: Math.E };
const TOKEN = /\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|([a-z]+)|(\*\*|[-+*/%^()]))/iy;
const WORDS = { plus: "+", minus: "-", times: "*", "multiplied by": "*", "divided by": "/", over: "/", x: "*", "×": "*", "÷": "/", "−": "-" };
const WORD = /\b(?:plus|minus|times|multiplied by|divided by|over)\b|(?<=\d\s*)(?<!\b0)x(?=\s*\d)|[×÷−]/gi; // 0x10 is no product
const MAX_LENGTH = 500;

/** Returns the value of an expression as `2 * (3 + 4) ** 2`. Throws an Error that says what is wrong with it. */
export function calculate(expression) {
  if (expression.length > MAX_LENGTH) throw new Error(`an expression has at most ${MAX_LENGTH} characters`);
  const parser = new Parser(tokensOf(expression));
  const value = parser.sum();
  if (!parser.isAtEnd) throw new Error(`unexpected ${parser.next}`);
  if (!Number.isFinite(value)) throw new Error("the result is not a finite number");
  return value;
}

function tokensOf(expression) {
  const tokens = [];
  const text = expression.replace(WORD, (word) => WORDS[word.toLowerCase()]).trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (found === null) throw new Error(`unexpected ${text.slice(start, start + 10).trim()}`);
    tokens.push(found[0].trim());
  }
  return tokens;
}

class Parser {
  #position = 0;

  constructor(tokens) {
    this.tokens = tokens;
  }

  get next() {
    return this.tokens[this.#position] ?? "the end";
  }

  get isAtEnd() {
    return this.#position === this.tokens.length;
  }

  sum() {
    let value = this.product();
    for (;;) {
      if (this.#takes("+")) value += this.product();
      else if (this.#takes("-")) value -= this.product();
      else return value;
    }
  }

  product() {
    let value = this.signed();
    for (;;) {
      if (this.#takes("*")) value *= this.signed();
      else if (this.#takes("/")) value /= this.signed();
      else if (this.#takes("%")) value %= this.signed();
      else return value;
    }
  }

  signed() {
    if (this.#takes("-")) return -this.signed();
    if (this.#takes("+")) return this.signed();
    return this.power();
  }

  power() {
    const base = this.atom();
    return this.#takes("**") || this.#takes("^") ? base ** this.signed() : base;
  }

  atom() {
    const token = this.next;
    if (this.#takes("(")) return this.#closed(this.sum());
    this.#position += 1;
    if (/^[\d.]/.test(token)) return Number(token);
    const name = token.toLowerCase();
    if (Object.hasOwn(CONSTANTS, name)) return CONSTANTS[name];
    if (!Object.hasOwn(FUNCTIONS, name)) throw new Error(`unexpected ${token}`);
    if (!this.#takes("(")) throw new Error(`${token} needs parentheses`);
    return FUNCTIONS[name](this.#closed(this.sum()));
  }

  #takes(token) {
    const isThere = this.tokens[this.#position] === token;
    if (isThere) this.#position += 1;
    return isThere;
  }

  #closed(value) {
    if (!this.#takes(")")) throw new Error("a parenthesis is not closed");
    return value;
  }
}
