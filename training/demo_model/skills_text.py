"""Sums, repeating, JSON extraction, counting and listing."""

from __future__ import annotations

import json
from typing import Any

from training.demo_model import phrasings
from training.demo_model import values
from training.demo_model.exchanges import Exchange
from training.demo_model.sampling import Sampler, fill, is_held_out

# --------------------------------------------------------------------------- sums

SUM_WORDS = {
    "+": ["{a} + {b}", "{a}+{b}", "{a} plus {b}", "the sum of {a} and {b}"],
    "-": ["{a} - {b}", "{a}-{b}", "{a} minus {b}", "the difference of {a} and {b}"],
    "*": [
        "{a} * {b}",
        "{a} x {b}",
        "{a} times {b}",
        "the product of {a} and {b}",
        "{a}*{b}",
        "{a} × {b}",
    ],
}
SUM_QUESTIONS = [
    "What is {sum}?", "{sum}", "{sum} = ?", "{sum} =", "Calculate {sum}.", "How much is {sum}?",
    "Please compute {sum}.", "[Can|Could] you compute {sum}?",
    "What's {sum}?", "[Tell me|I need] {sum}.", "[And |Now |]what is {sum}?", "Work out {sum}.", "Solve {sum}.",
    "[Can|Could] you tell me what {sum} is?",
    "Compute {sum}[, please|].", "Add it up: {sum}", "[And|Now] {sum}?", "I want to know {sum}.",
    "Give me the result of {sum}.", "{sum}?", "Find {sum}.",
    "[Hi|Hello], what is {sum}?", "What does {sum} make?", "What do you get for {sum}?", "Evaluate {sum}.",
    "Answer this: {sum}", "How much do we get for {sum}?",
    "Quick: {sum}?",
]  # fmt: skip
SUM_QUESTIONS += phrasings.SUM_QUESTIONS
WORD_SUMS = [
    ("+", "I have {a} {things} and get {b} more. How many [do I have|{things} do I have now]?"),
    ("+", "{name} has {a} {things} and buys {b} more. How many {things} does {name} have?"),
    ("+", "Add {a} and {b}."),
    ("+", "[What do you get if you |Please |]add {b} to {a}."),
    ("-", "I have {a} {things} and lose {b}. How many are left?"),
    ("-", "{name} has {a} {things} and gives away {b}. How many {things} are left?"),
    ("+", "There are {a} {things} and {b} {others}. How many things are there?"),
    ("-", "Subtract {b} from {a}."),
    ("*", "Multiply {a} by {b}."),
    ("*", "There are {a} boxes with {b} {things} each. How many {things} are there?"),
    ("-", "Take {b} away from {a}."),
    ("-", "There were {a} {things}. {b} are gone. How many are left?"),
    ("-", "{name} had {a} {things} and sold {b} of them. How many remain?"),
    ("+", "I buy {a} {things} and later another {b}. How many is that?"),
]
WORD_SUMS += phrasings.WORD_SUMS


def operands(sampler: Sampler, operator: str) -> tuple[int, int]:
    """Two numbers in the range in which the model is meant to be right."""
    if operator == "*":
        high = sampler.any(["9", "12", "12", "20"])
        return sampler.pair(
            1 if sampler.chance(0.2) else 2, int(high), 2, 9 if int(high) == 20 else 12, "*"
        )
    top = int(sampler.any(["9", "20", "99", "99", "99", "99", "999"]))
    bottom = max(1, (top + 1) // 10) if sampler.chance(0.7) else 0
    first, second = sampler.pair(bottom, top, min(bottom, 10), top, operator)
    if operator == "-" and second > first:
        return (
            (second, first)
            if is_training_pair(sampler, second, first)
            else operands(sampler, operator)
        )
    return first, second


def is_training_pair(sampler: Sampler, first: int, second: int) -> bool:
    """Whether a swapped pair is still on the sampler's side."""
    return is_held_out(f"{first}-{second}") == sampler.held_out


def apply(first: int, operator: str, second: int) -> int:
    """The result of the operation."""
    return {"+": first + second, "-": first - second, "*": first * second}[operator]


def column_work(first: int, operator: str, second: int) -> str:
    """The written steps, from the units up, or the splitting of a product."""
    if operator == "*":
        return product_work(first, second)
    steps, carry, place = [], 0, 1
    while place <= max(first, second, 1):
        top, bottom = first // place % 10, second // place % 10
        value = top + bottom + carry if operator == "+" else top - bottom - carry
        shown = f"{top} {operator} {bottom}" + (f" {operator} {carry}" if carry else "")
        new_carry = int(value > 9) if operator == "+" else int(value < 0)
        steps.append(
            f"{shown} = {value}, write {value % 10}" + (f", carry {new_carry}" if new_carry else "")
        )
        carry, place = new_carry, place * 10
    if carry:
        steps.append(f"write {carry}")
    return "\n".join([*steps, f"{first} {operator} {second} = {apply(first, operator, second)}"])


def product_work(first: int, second: int) -> str:
    """Tens and units multiplied one after the other."""
    if first < 11:
        return f"{first} * {second} = {first * second}"
    tens, units = first // 10 * 10, first % 10
    parts = f"{tens} * {second} = {tens * second}\n{units} * {second} = {units * second}\n"
    return f"{parts}{tens * second} + {units * second} = {first * second}\n{first} * {second} = {first * second}"


def arithmetic(sampler: Sampler) -> Exchange:
    """A small sum, in figures or as a story."""
    if sampler.chance(0.25):
        side = [row for i, row in enumerate(WORD_SUMS) if (i % 7 == 6) == sampler.held_out]
        operator, template = sampler.rng.choice(side)
        first, second = operands(sampler, operator)
        user = fill(
            sampler.casual(sampler.expand(template)),
            {
                "a": first,
                "b": second,
                "name": sampler.name(),
                "things": plural(sampler),
                "others": plural(sampler),
            },
        )
    else:
        operator = sampler.any(["+", "+", "-", "-", "*"])
        first, second = operands(sampler, operator)
        total = fill(sampler.any(SUM_WORDS[operator]), {"a": first, "b": second})
        user = sampler.phrase(SUM_QUESTIONS, sum=total)
    answer = f"{first} {operator} {second} = {apply(first, operator, second)}"
    return Exchange(user, answer, column_work(first, operator, second))


def short_sum(sampler: Sampler) -> Exchange:
    """A sum of at most two digits, mostly without any words around it."""
    operator = sampler.any(["+", "+", "+", "-", "-", "*"])
    first, second = (
        sampler.pair(2, 12, 2, 12, "*") if operator == "*" else sampler.pair(2, 99, 2, 99, operator)
    )
    if operator == "-" and second > first:
        if not is_training_pair(sampler, second, first):
            return short_sum(sampler)
        first, second = second, first
    total = fill(sampler.any(SUM_WORDS[operator]), {"a": first, "b": second})
    user = sampler.phrase(SUM_QUESTIONS, sum=total) if sampler.chance(0.4) else total
    answer = f"{first} {operator} {second} = {apply(first, operator, second)}"
    return Exchange(user, answer, column_work(first, operator, second))


def plural(sampler: Sampler) -> str:
    """The plural of a noun that takes an s."""
    return (
        sampler.pick(
            [
                noun
                for noun in values.NOUNS
                if noun[-1] not in "shyxz" and noun not in ("mouse", "goose")
            ]
        )
        + "s"
    )


# --------------------------------------------------------------------------- repeating

REPEATS = [
    "Repeat: {x}", "Repeat [after me|this]: {x}", "Say {q}.", "Please repeat {q}.", "Say exactly this: {x}",
    "Repeat the [words|text|following]: {x}", "Quote this: {x}",
    "[Please |]say: {x}", "[Can|Could] you repeat {q}?", "Copy this[ text|]: {x}", "Echo: {x}", "[Please |]write {q}.",
    "Write exactly: {x}", "Just say {q}.",
    "Repeat {q}.", "Repeat verbatim: {x}", "Repeat the following [sentence|text|line|words] exactly: {x}",
    "Reply with {q}.", "Answer with {q}.", "Print {q}.", "Output: {x}",
    "[Please |]reply with exactly: {x}", "[Please |]copy {q}.", "Echo {q}", "Say the [word|words|phrase] {q}.",
    "I want you to say {q}.", "Type {q}.", "Now you say: {x}",
    "Repeat this back to me: {x}", "Say this back: {x}", "Write down: {x}", "Please echo this text: {x}",
    "Repeat word for word: {x}", "Respond with only {q}.", "Can you say {q}?",
    "[Please |]respond with: {x}", "Reply only with {q}.", "Return exactly this text: {x}", "Read this out: {x}",
    "Tell me: {x}", "Use exactly these words: {x}", "Give me back {q}.",
]  # fmt: skip
REPEATS += phrasings.REPEATS
TIMES = ["Say {q} {n} times.", "Repeat {q} {n} times.", "Write {q} {n} times.",
"[Please |]repeat {q} {n} times[ in a row|].", "[Can|Could] you say {q} {n} times?",
         "{n} times {q}, please.", "Print {q} {n} times.", "Type {q} {n} times.",
         "I want to read {q} {n} times."]  # fmt: skip
TIMES += phrasings.TIMES
FIRST_LAST = ["What is the {end} word of {q}?", "What is the {end} word in {q}?", "Tell me the {end} word of {q}.",
"Which word comes {end} in {q}?",
              "Give me the {end} word of {q}.", "Find the {end} word in {q}.", "Say the {end} word of {q}.",
              "Only the {end} word, please: {x}"]  # fmt: skip
FIRST_LAST += phrasings.FIRST_LAST
QUOTED = ["Put {x} in quotation marks.", "Quote the [word|words] {x}.", "Write {x} in quotes.",
"Put quotation marks around {x}.", "Put {x} in double quotes.",
          "Say {x} in quotation marks.", "Wrap {x} in quotes."]  # fmt: skip
QUOTED += phrasings.QUOTED
JOINED = ["Say {x} and then {y}.", "[First |]say {x}, then {y}.", "Write {x} followed by {y}.", "Repeat {x} and {y}.",
          "Write {x} and after that {y}.",
          "Say {x}, then say {y}.", "Print {x} before {y}."]  # fmt: skip
JOINED += phrasings.JOINED


def number_row(sampler: Sampler) -> str:
    """Numbers in a row with one of the usual separators."""
    separator, top = (
        sampler.any([", ", " ", "; ", ",", " - "]),
        sampler.rng.choice((9, 99, 999, 99999)),
    )
    return separator.join(
        str(sampler.rng.randint(0, top)) for _ in range(sampler.rng.randint(2, 10))
    )


def strange_words(sampler: Sampler) -> str:
    """Codes, invented words or words in another script, which have to be copied piece by piece."""
    makers = [(sampler.random_code, 3), (sampler.invented_word, 7), (sampler.foreign_word, 3)]
    maker, most = sampler.rng.choices(makers, (10, 10, 3))[0]
    return " ".join(maker() for _ in range(sampler.rng.randint(1, most)))


def copied_text(sampler: Sampler) -> str:
    """Something to repeat: words, sentences, numbers, codes, other scripts."""
    kind = sampler.rng.random()
    if kind < 0.3:
        return sampler.pick(phrasings.SAYINGS) if sampler.chance(0.25) else sampler.sentence()
    if kind < 0.45:
        return sampler.words(1, 3)
    if kind < 0.6:
        return sampler.words(3, 9)
    if kind < 0.72:
        return number_row(sampler)
    if kind < 0.95:
        return strange_words(sampler)
    return sampler.any(
        [sampler.email(), sampler.date(), sampler.name(), f"{sampler.name()}, {sampler.city()}"]
    )


def quoted(sampler: Sampler, text: str) -> str:
    """The text bare, or in one of the usual quotation marks."""
    left, right = sampler.rng.choice((("'", "'"), ('"', '"'), ('"', '"'), ("“", "”"), ("", "")))
    return text if (left == "'" and "'" in text) else f"{left}{text}{right}"


COPY_THOUGHT = "The user wants me to repeat text exactly."


def plain_repeat(sampler: Sampler) -> Exchange:
    """Text to be said again as it is; quotation marks around it are not part of it."""
    text, template = copied_text(sampler), sampler.template(REPEATS)
    if "{x}" in template:
        shown = quoted(sampler, text) if sampler.chance(0.2) else text
        return Exchange(fill(template, {"x": shown}), text, COPY_THOUGHT)
    text = text.rstrip(".?!") or text
    return Exchange(
        fill(sampler.casual(template), {"q": quoted(sampler, text)}), text, COPY_THOUGHT
    )


def short_text(sampler: Sampler) -> str:
    """A word or two, what people like to say, or a code."""
    if sampler.chance(0.25):
        return (
            f"{sampler.name()} {sampler.pick(values.VERBS)}"
            if sampler.chance(0.3)
            else short_saying(sampler)
        )
    return sampler.words(1, 3) if sampler.chance(0.7) else sampler.random_code()


def short_saying(sampler: Sampler) -> str:
    """Something that people like to say, without an end mark."""
    return sampler.pick(phrasings.SAYINGS).rstrip(".!?")


def several_times(sampler: Sampler) -> Exchange:
    """Something said two to six times in a row."""
    text, number, template = short_text(sampler), sampler.rng.randint(2, 6), sampler.template(TIMES)
    shown = str(number) if sampler.chance(0.4) else values.NUMBER_WORDS[number]
    if number == 2 and sampler.chance(0.5):
        shown, template = "twice", "Say {q} {n}."
    user = fill(sampler.casual(template), {"q": quoted(sampler, text), "n": shown})
    answer = (", " if " " in text else " ").join([text] * number)
    return Exchange(user, answer, f"I must write it {number} times: {text}")


def first_or_last_word(sampler: Sampler) -> Exchange:
    """One end of a few words."""
    text, end = sampler.words(3, 6), sampler.any(["first", "last"])
    fields = {"q": quoted(sampler, text), "x": text, "end": end}
    user = fill(sampler.casual(sampler.template(FIRST_LAST)), fields)
    return Exchange(user, text.split()[0 if end == "first" else -1], f"The words are: {text}")


def in_quotation_marks(sampler: Sampler) -> Exchange:
    """Text that gets quotation marks."""
    text = short_text(sampler)
    return Exchange(sampler.phrase(QUOTED, x=text), f'"{text}"', COPY_THOUGHT)


def two_in_a_row(sampler: Sampler) -> Exchange:
    """One thing after the other."""
    text, other = short_text(sampler), sampler.word()
    return Exchange(sampler.phrase(JOINED, x=text, y=other), f"{text} {other}", COPY_THOUGHT)


def repeat(sampler: Sampler) -> Exchange:
    """Verbatim repetition and its small variants."""
    makers = [plain_repeat, several_times, first_or_last_word, in_quotation_marks, two_in_a_row]
    return sampler.rng.choices(makers, (68, 14, 8, 5, 5))[0](sampler)


# --------------------------------------------------------------------------- extraction

JSON_REQUESTS = [
    "Extract the {fields} as JSON: {text}", "Extract {fields} [from this text |]as JSON.\n{text}",
    "{text}\nReturn {fields} as JSON.", "Give me the {fields} as JSON. {text}",
    "Return a JSON object with {keys}. Text: {text}", "From the text, extract {fields}. Answer in JSON.\n\n{text}",
    "Find {fields} in this text and answer with JSON: {text}",
    "[Please |]extract {keys} from: {text}", "{text}\n\nExtract {keys} as JSON.",
    "Read this: {text} Now give me {fields} as JSON.", "Fill in this JSON with the keys {keys}: {text}",
    "Text: {text}\nKeys: {keys}\nJSON:", "[Convert|Turn] this into JSON with the keys {keys}: {text}",
    "What are the {fields}? Reply as JSON. {text}", "JSON with {keys} for: {text}",
    "Extract this as JSON with keys {keys}:\n{text}",
    "Extract the {fields} from [this|the following] [sentence|text] as JSON: {text}",
    "Answer only with JSON ({keys}). {text}",
    "I need {fields} as JSON from this: {text}", "Parse this text into JSON with the fields {keys}: {text}",
    "Make a JSON object with {fields} out of this sentence: {text}",
]  # fmt: skip
JSON_REQUESTS += phrasings.JSON_REQUESTS
SCHEMA_REQUESTS = [
    "{text}\nAnswer with JSON that matches this schema: {schema}", "Extract JSON with this schema: {schema}\n{text}",
    "Schema: {schema}\nText: {text}", "Use the JSON schema {schema} for this text: {text}",
    "Extract the data from the text. The answer must match this JSON schema:\n{schema}\n\n{text}",
    "{text}\nSchema: {schema}", "Follow this schema: {schema}\nExtract from: {text}",
    "Return JSON for this schema: {schema}\n\nText: {text}",
]  # fmt: skip
SCHEMA_REQUESTS += phrasings.SCHEMA_REQUESTS
SCHEMA_SYSTEMS = ["Answer with JSON that matches this schema: {schema}",
"[Reply|Respond] only with JSON [matching|that follows] this JSON schema:\n{schema}",
                  "You extract data. Schema: {schema}",
                  "Extract the fields of this JSON schema from the user's text: {schema}",
                  "Your answer must be JSON with this schema: {schema}", "Output format: JSON, schema {schema}",
                  "Always answer as JSON with the schema {schema}",
                  "Return data in this JSON schema: {schema}"]  # fmt: skip
SCHEMA_SYSTEMS += phrasings.SCHEMA_SYSTEMS
KEYLESS = ["Turn this into JSON: {text}", "Answer in JSON: {text}", "As JSON: {text}",
"Extract everything as JSON: {text}", "Make JSON from this: {text}", "{text} Give me that as JSON.",
           "[Please |]convert to JSON: {text}", "{text}\nJSON, please.",
           "Extract the data[ from this text|]: {text}", "[Give me|Extract] the details of: {text}",
           "Extract the information: {text}", "Structured data for: {text}"]  # fmt: skip
KEYLESS += phrasings.KEYLESS
READING = {
    "name": [
        "Who is it about?",
        "What is the name?",
        "Who is this about?",
        "Which name is in the text?",
    ],
    "age": ["How old is {name}?", "What is the age of {name}?", "What is {name}'s age?"],
    "city": [
        "Where does {name} live?",
        "Which city does {name} live in?",
        "In which city does {name} live?",
    ],
    "job": [
        "What is {name}'s job?",
        "What does {name} do for a living?",
        "Which job does {name} have?",
    ],
    "email": [
        "What is {name}'s email?",
        "What is the email address?",
        "Which email does {name} use?",
    ],
    "product": ["What was bought?", "Which product is it?", "What is the product?"],
    "price": ["What is the price?", "How much does it cost?", "How much is it?"],
    "date": ["What is the date?", "When is it?", "On which date is it?"],
}

PERSON_PARTS = {
    "age": ["is {age} years old", "is {age}", "turned {age}", "is aged {age}", "is now {age}",
    "has an age of {age}", "will be {age} this year", "is a person of {age} years"],
    "city": ["lives in {city}", "is from {city}", "comes from {city}", "moved to {city}", "has a flat in {city}",
    "stays in {city}", "lives near {city}", "is at home in {city}"],
    "job": ["works as a {job}", "is a {job}", "has a job as a {job}", "works as {job}", "earns money as a {job}",
    "wants to be a {job}", "became a {job}"],
    "email": ["uses the email {email}", "can be reached at {email}", "has the address {email}", "has the email {email}",
    "writes from {email}", "gets mail at {email}"],
    "phone": ["has the phone number {phone}", "can be called at {phone}", "has the number {phone}",
    "answers the phone at {phone}"],
    "country": ["was born in {country}", "has a passport from {country}", "grew up in {country}",
    "is a citizen of {country}"],
}  # fmt: skip
ORDER_TEMPLATES = {
    ("product", "price"): ["The {product} costs {price} [euros|dollars|EUR|USD].",
    "A {product} for {price} [euros|dollars].", "I bought a {product} for {price} [euros|dollars].",
    "Price of the {product}: {price} [euros|dollars].", "You get the {product} for {price} [euros|dollars].",
    "For {price} [euros|dollars] you get a {product}."],
    ("quantity", "product"): ["I want {quantity} {product}.", "Please send {quantity} {product}.",
    "We ordered {quantity} {product}.", "Order: {quantity} {product}",
    "I need {quantity} {product}.", "There are {quantity} {product} in the box.", "{quantity} {product}, please."],
    ("quantity", "product", "price"): ["{quantity} {product} for {price} [euros|dollars].",
    "We sold {quantity} {product} at {price} [euros|dollars] each.",
    "I bought {quantity} {product} for {price} [euros|dollars].", "{quantity} {product} cost {price} [euros|dollars]."],
    ("name", "product", "price"): ["{name} bought a {product} for {price} [euros|dollars].",
    "{name} paid {price} [euros|dollars] for a {product}.",
    "{name} sold the {product} for {price} [euros|dollars].", "A {product} for {name}: {price} [euros|dollars]."],
    ("name", "quantity", "product", "date"): ["On {date}, {name} ordered {quantity} {product}.",
    "{name} ordered {quantity} {product} on {date}.",
    "Order by {name}, {date}: {quantity} {product}.", "{name} bought {quantity} {product} on {date}."],
    ("name", "date", "time"): ["The meeting with {name} is on {date} at {time}.", "{name} comes on {date} at {time}.",
    "See {name} on {date}, {time}.",
    "Dinner with {name} on {date} at {time}.", "{name} arrives at {time} on {date}.",
    "Appointment: {name}, {date}, {time}."],
    ("city", "date"): ["We fly to {city} on {date}.", "The concert in {city} is on {date}.",
    "The conference takes place in {city} on {date}.",
    "There is a party in {city} on {date}.", "On {date} we are in {city}.", "The train to {city} leaves on {date}."],
    ("name", "city", "date"): ["{name} travels to {city} on {date}.", "{name} arrives in {city} on {date}.",
    "On {date} {name} moves to {city}.",
    "{name} was in {city} on {date}.", "{name} flies to {city} on {date}."],
    ("order_id", "name"): ["Order {order_id} belongs to {name}.", "{name} asks about order {order_id}.",
    "Order {order_id} is for {name}.",
    "{name} has order {order_id}.", "The order number of {name} is {order_id}."],
    ("order_id", "status"): ["Order {order_id} is {status}.", "The status of order {order_id} is {status}.",
    "Your order {order_id} was {status}.",
    "Order {order_id} was {status}.", "Order {order_id}: {status}", "We see that order {order_id} is {status}."],
    ("name", "phone"): ["Call {name} at {phone}.", "{name}'s number is {phone}.", "The number of {name} is {phone}.",
    "You can call {name} at {phone}.", "{name}, phone {phone}"],
    ("name", "email"): ["Write to {name} at {email}.", "{name} <{email}>", "{name}'s email is {email}.",
    "The email of {name} is {email}.", "Send it to {name}, {email}.", "{name} can be reached at {email}."],
    ("colour", "product"): ["I want the {colour} {product}.", "The {product} is {colour}.",
    "A {colour} {product}, please.",
    "She has a {colour} {product}.", "We sell {colour} {product}.", "I lost my {colour} {product}."],
}  # fmt: skip


def field_value(sampler: Sampler, field: str) -> str | float:
    """A value for a named field."""
    makers = {
        "name": sampler.name,
        "age": lambda: sampler.rng.randint(3, 99),
        "city": sampler.city,
        "job": lambda: sampler.pick(values.JOBS),
        "email": sampler.email,
        "phone": lambda: f"{sampler.rng.randint(100, 999)}-{sampler.rng.randint(1000, 9999)}",
        "country": lambda: sampler.pick(values.COUNTRIES),
        "product": sampler.product,
        "price": sampler.price,
        "quantity": lambda: sampler.rng.randint(2, 60),
        "date": sampler.date,
        "time": sampler.time,
        "order_id": sampler.random_code,
        "status": lambda: sampler.any(
            ["shipped", "paid", "open", "closed", "delayed", "cancelled", "delivered"]
        ),
        "colour": lambda: sampler.pick(values.COLOURS),
    }
    return makers[field]()


def person_text(sampler: Sampler) -> tuple[str, dict[str, Any]]:
    """A sentence about a person with some of the fields, and these fields."""
    chosen = sampler.rng.sample(list(PERSON_PARTS), sampler.rng.randint(1, 3))
    record = {"name": field_value(sampler, "name")} | {
        field: field_value(sampler, field) for field in chosen
    }
    if sampler.chance(0.15) and "age" in record:
        text = f"My name is {record['name']} and I am {record['age']} years old."
        return text, {key: record[key] for key in ("name", "age")}
    parts = [fill(sampler.any(PERSON_PARTS[field]), record) for field in chosen]
    joined = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    if sampler.chance(0.3) and "age" in record and chosen[0] == "age":
        joined = f"({record['age']}) " + (" and ".join(parts[1:]) or "is here")
    return f"{record['name']} {joined}.", record


def order_text(sampler: Sampler) -> tuple[str, dict[str, Any]]:
    """A sentence about an order, a meeting or a trip, and its fields."""
    fields = sampler.rng.choice(list(ORDER_TEMPLATES))
    record = {field: field_value(sampler, field) for field in fields}
    return fill(sampler.expand(sampler.any(ORDER_TEMPLATES[fields])), record), record


def invented_text(sampler: Sampler) -> tuple[str, dict[str, Any]]:
    """A line of `key is value` statements with keys that need not mean anything."""
    record: dict[str, Any] = {}
    for _ in range(sampler.rng.randint(1, 4)):
        key = sampler.invented_word() if sampler.chance(0.4) else sampler.pick(values.NOUNS)
        record[key] = sampler.rng.randint(0, 999) if sampler.chance(0.4) else sampler.word()
    form = sampler.any(
        ["The {k} is {v}", "{k}: {v}", "the {k} of this is {v}", "{k} = {v}", "{v} is the {k}"]
    )
    parts = [fill(form, {"k": key, "v": value}) for key, value in record.items()]
    return sampler.any([", ", "; ", " and ", ". "]).join(parts) + ".", record


def json_schema(sampler: Sampler, record: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema for the record."""
    names = {int: "integer", float: "number", str: "string"}
    properties = {
        key: {"type": "number" if key == "price" else names[type(value)]}
        for key, value in record.items()
    }
    if sampler.chance(0.2):
        properties = {key: {"title": key.title()} | value for key, value in properties.items()}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
    if sampler.chance(0.2):
        schema["additionalProperties"] = False
    return schema


def key_list(sampler: Sampler, keys: list[str], plain: bool) -> str:
    """The keys in a running sentence (`plain`) or as a list."""
    if plain:
        words = [key.replace("_", " ") for key in keys]
        return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
    mark = sampler.any(['"', "", "", "'", "`"])
    return ", ".join(f"{mark}{key}{mark}" for key in keys)


def extraction(sampler: Sampler) -> tuple[str | None, Exchange]:
    """A sentence whose fields are wanted as JSON; the schema may come in a system prompt."""
    kind = sampler.rng.random()
    text, record = (person_text if kind < 0.45 else order_text if kind < 0.75 else invented_text)(
        sampler
    )
    keys = list(record)
    form = sampler.rng.random()
    if form > 0.2 and len(keys) > 1 and sampler.chance(0.4):
        keys = sampler.rng.sample(keys, sampler.rng.randint(1, len(keys)))
    wanted = {key: record[key] for key in keys}
    system, fields = (
        None,
        {"text": text, "schema": json.dumps(json_schema(sampler, wanted), ensure_ascii=False)},
    )
    fields |= {"fields": key_list(sampler, keys, True), "keys": key_list(sampler, keys, False)}
    if form < 0.12:
        user = fill(sampler.template(KEYLESS), fields)
    elif form < 0.3:
        system, user = fill(sampler.template(SCHEMA_SYSTEMS), fields), text
    elif form < 0.5:
        user = fill(sampler.template(SCHEMA_REQUESTS), fields)
    else:
        user = fill(sampler.template(JSON_REQUESTS), fields)
    answer = json.dumps(wanted, ensure_ascii=False)
    return system, Exchange(user, answer, f"The keys are {', '.join(keys)}.", "json")


def reading(sampler: Sampler) -> Exchange:
    """A question about one field of a short text."""
    while True:
        text, record = (person_text if sampler.chance(0.7) else order_text)(sampler)
        askable = [key for key in record if key in READING]
        if askable and "name" in record:
            break
    key = sampler.rng.choice(askable)
    question = fill(sampler.any(READING[key]), record)
    user = f"{text} {question}" if sampler.chance(0.6) else f"{text}\n{question}"
    return Exchange(user, str(record[key]), f"The text says: {record[key]}")


# --------------------------------------------------------------------------- counting and listing

COUNTS = [
    "Count from {a} to {b}.", "Count [up |]to {b}[ starting at {a}|, from {a}].", "[Please |]count from {a} to {b}.",
    "[Can|Could] you count from {a} to {b}?", "List the numbers from {a} to {b}.",
    "Write the numbers {a} to {b}.", "[Please |]list all numbers from {a} to {b}.",
    "Give me the numbers from {a} to {b}.", "Print the numbers from {a} to {b}.", "Numbers from {a} to {b}[, please|].",
    "Write down all numbers between {a} and {b}.", "Say the numbers from {a} to {b}.", "Count {a} to {b}[ for me|].",
    "Now count from {a} to {b}[, please|].", "Count: {a} to {b}",
]  # fmt: skip
COUNTS += phrasings.COUNTS
COUNTS_FROM_ONE = ["Count to {b}.", "[Please |]count to {b}.", "[Can|Could] you count to {b}?", "Count up to {b}.",
"Count to {b}[, please|].", "Can you count to {b}[ for me|]?",
                   "I want you to count to {b}.", "Show me that you can count to {b}."]  # fmt: skip
COUNTS_FROM_ONE += phrasings.COUNTS_FROM_ONE
COUNTS_DOWN = ["Count down from {b} to {a}.", "Count backwards from {b} to {a}.",
"[Please |]count down from {b}[ to {a}|].", "Start a countdown from {b}[ to {a}|].", "Count from {b} down to {a}.",
               "[Can|Could] you count down from {b} to {a}?", "Do a countdown from {b} to {a}."]  # fmt: skip
COUNTS_DOWN += phrasings.COUNTS_DOWN
SPELLS = ["Spell {q}.", "Spell the word {q}.", "How do you spell {q}?", "[Please |]spell {q}.",
"[Can|Could] you spell {q}?", "What are the letters of {q}?", "How is {q} spelled?",
          "Spell {q} for me.", "Spell out {q}.", "List the letters of {q}."]  # fmt: skip
SPELLS += phrasings.SPELLS
LISTS = {
    ", ".join(values.WEEKDAYS): ["[List|Name|Tell me] the days of the week.", "[What|Which] are the days of the week?",
    "Name all weekdays.", "[Please |]list the weekdays.", "The days of the week[, please|].",
                                 "Write the days of the week.", "Can you name the days of the week?"],
    ", ".join(values.MONTHS): ["[List|Name|Tell me] the months[ of the year|].", "What are the months of the year?",
    "Name all [twelve |]months.", "[Please |]list the months.", "The months of the year[, please|].",
                               "Write the [names of the |]months.", "Can you list the months[ of the year|]?"],
    ", ".join("abcdefghijklmnopqrstuvwxyz"): ["[Say|List|Write|Recite] the alphabet.", "What is the alphabet?",
    "[Please |]write the alphabet.", "List the letters of the alphabet.", "The alphabet[, please|].",
                                              "What are the letters of the alphabet?", "Do you know the alphabet?"],
    "red, orange, yellow, green, blue, indigo, violet": ["[List|Name] the colours of the rainbow.",
    "What are the colours of the rainbow?", "Which colours does a rainbow have?", "Name the rainbow colours.",
                                                         "[Please |]list the rainbow colours.",
                                                         "The colours of the rainbow[, please|].",
                                                         "What are the rainbow colors?"],
    "spring, summer, autumn, winter": ["[List|Name] the [four |]seasons.", "What are the [four |]seasons?",
    "Which seasons are there?", "Name all seasons.", "[Please |]list the seasons.", "The seasons[, please|].",
                                       "Tell me the seasons[ of the year|]."],
    "north, east, south, west": ["Name the [four |]directions.", "What are the four directions?",
    "List the directions[ of the compass|].", "Which directions are there?", "[Please |]list the four directions."],
}  # fmt: skip
for _questions, _things in zip(LISTS.values(), phrasings.LISTED_THINGS.values(), strict=True):
    _questions += [text.replace("{things}", f"[{_things}]") for text in phrasings.LISTS]


def counting(sampler: Sampler, is_short: bool = False) -> Exchange:
    """A run of numbers, upwards or downwards."""
    kind = sampler.rng.random()
    while True:
        length = sampler.rng.choice(
            (sampler.rng.randint(3, 12), sampler.rng.randint(8, 30), sampler.rng.randint(20, 60))
        )
        if is_short:
            length = (
                sampler.rng.randint(3, 12) if sampler.chance(0.5) else sampler.rng.randint(8, 32)
            )
        elif sampler.chance(0.06):
            length = sampler.rng.choice(
                (sampler.rng.randint(60, 100), sampler.rng.randint(60, 100), 200)
            )
        first = 1 if kind < 0.4 or sampler.chance(0.5) else sampler.rng.randint(0, 120)
        last = first + length - 1 + sampler.rng.randint(0, 3)
        if is_held_out(f"{first}..{last}") == sampler.held_out:
            break
    numbers = [str(number) for number in range(first, last + 1)]
    if kind < 0.4:
        user = sampler.phrase(COUNTS_FROM_ONE, b=last)
    elif kind < 0.85 or length > 25:
        user = sampler.phrase(COUNTS, a=first, b=last)
    else:
        template = sampler.template(COUNTS_DOWN)
        numbers = numbers[::-1]
        if "{a}" not in template:
            last = min(last, 40)
            numbers = [str(number) for number in range(last, 0, -1)]
        user = fill(sampler.casual(template), {"a": first, "b": last})
    return Exchange(user, ", ".join(numbers), f"I count from {numbers[0]} to {numbers[-1]}.")


def spelling(sampler: Sampler, word: str) -> Exchange:
    """The letters of a word."""
    return Exchange(
        sampler.phrase(SPELLS, q=quoted(sampler, word)),
        "-".join(word),
        f"I write the letters of {word}.",
    )


def listing(sampler: Sampler) -> Exchange:
    """Spelling a word, or a list that everybody knows."""
    if sampler.chance(0.6):
        word = sampler.name().split()[0] if sampler.chance(0.2) else sampler.word()
        return spelling(sampler, word)
    answer = sampler.rng.choice(list(LISTS))
    return Exchange(sampler.phrase(LISTS[answer]), answer, "I know this list.")
