"""Makes requests of all kinds for a soak: `KINDS` has a maker for each; fifty use a grammar."""

import json
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any  # JSON

Json = dict[str, Any]

_WORDS = [
    "heron",
    "river",
    "stone",
    "lantern",
    "copper",
    "meadow",
    "winter",
    "ladder",
    "violet",
    "harbour",
    "engine",
    "pepper",
]


@dataclass(frozen=True)
class Ask:
    path: str
    body: Json = field(default_factory=dict)
    method: str = "POST"

    @property
    def is_stream(self) -> bool:
        return self.body.get("stream") is True


Kind = Callable[[Random], Ask]


def text(random: Random, num_words: int) -> str:
    return " ".join(random.choices(_WORDS, k=num_words))


def name(random: Random) -> str:
    """Returns a name of six letters, so that hardly two grammars are the same."""
    return "".join(random.choices(string.ascii_lowercase, k=6))


def chat(random: Random, **fields: Any) -> Ask:
    messages = [{"role": "user", "content": text(random, random.choice((3, 30, 300)))}]
    body = {
        "messages": messages,
        "max_tokens": random.choice((4, 16, 64)),
        "stream": random.random() < 0.5,
    }
    return Ask("/v1/chat/completions", body | fields)


def completion(random: Random, **fields: Any) -> Ask:
    body = {"prompt": text(random, 20), "max_tokens": 16, "stream": random.random() < 0.5}
    return Ask("/v1/completions", body | fields)


# Shapes of schemas, each with names and numbers of its own every time


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _bounded_integer(random: Random) -> Json:
    least = random.randrange(-5000, 5000)
    return {"type": "integer", "minimum": least, "maximum": least + random.randrange(1, 10**6)}


def _number(random: Random) -> Json:
    return {
        "type": "number",
        "exclusiveMinimum": random.randrange(100),
        "maximum": 10**5 + round(random.random(), 2),
    }


def _nested(random: Random) -> Json:
    schema: Json = {"type": "boolean"}
    for _ in range(random.randrange(2, 12)):
        schema = _object({name(random): schema})
    return schema


def _recursive(random: Random) -> Json:
    child = {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    node = _object({name(random): {"type": "string", "maxLength": 5}, "next": child})
    return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}


def _many_fields(random: Random) -> Json:
    return _object({name(random): {"type": "integer"} for _ in range(random.choice((20, 60, 200)))})


def _optional_fields(random: Random) -> Json:
    return _object({name(random): {"type": "string"} for _ in range(8)}) | {"required": []}


SCHEMAS: dict[str, Callable[[Random], Json]] = {
    "empty": lambda _: {},
    "string": lambda r: {"type": "string", "maxLength": r.randrange(1, 200)},
    "long string": lambda r: {
        "type": "string",
        "minLength": 5,
        "maxLength": r.randrange(1000, 5000),
    },
    "pattern": lambda r: {
        "type": "string",
        "pattern": f"^{name(r)}[a-z]{{2,{r.randrange(3, 30)}}}$",
    },
    "open pattern": lambda r: {"type": "string", "pattern": f"{name(r)}|[0-9]+"},
    "date": lambda r: _object({name(r): {"type": "string", "format": "date-time"}}),
    "uuid": lambda r: _object({name(r): {"type": "string", "format": "uuid"}}),
    "email": lambda r: _object({name(r): {"type": "string", "format": "email"}}),
    "integer": lambda r: {"type": "integer"},
    "bounded integer": _bounded_integer,
    "number": _number,
    "multiple": lambda r: {"type": "integer", "multipleOf": r.randrange(2, 100)},
    "enum": lambda r: {"enum": [name(r) for _ in range(r.choice((3, 30, 300)))]},
    "const": lambda r: {"const": {name(r): [1, None, True, text(r, 5)]}},
    "array": lambda r: {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1,
        "maxItems": r.randrange(2, 50),
    },
    "tuple": lambda r: {
        "type": "array",
        "prefixItems": [{"const": name(r)}, {"type": "null"}],
        "items": False,
    },
    "objects": lambda r: {
        "type": "array",
        "items": _object({name(r): {"type": "string"}}),
        "maxItems": 4,
    },
    "nested": _nested,
    "recursive": _recursive,
    "many fields": _many_fields,
    "optional fields": _optional_fields,
    "any of": lambda r: {
        "anyOf": [_object({name(r): {"type": "integer"}}) for _ in range(r.randrange(2, 20))]
    },
    "map": lambda r: {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "maxProperties": 1,
    },
    "types": lambda r: {"type": ["string", "null", "integer"], "title": name(r)},
}

REGEXES: dict[str, Callable[[Random], str]] = {
    "words": lambda r: f"({name(r)}|{name(r)})( {name(r)}){{1,5}}",
    "digits": lambda r: rf"\d{{{r.randrange(1, 20)}}}",
    "classes": lambda r: f"[{''.join(r.sample(string.ascii_letters, 9))}]{{1,40}}",
    "unicode": lambda r: r"\p{Lu}\p{Ll}{2," + str(r.randrange(3, 20)) + "}",
    "dots": lambda r: f".{{0,{r.randrange(10, 200)}}}{name(r)}",
}

GRAMMARS: dict[str, Callable[[Random], str]] = {
    "sum": lambda r: f'root ::= n ("+" n)*\nn ::= [0-9]{{1,{r.randrange(2, 9)}}}',
    "brackets": lambda r: f'root ::= "{name(r)}" | "(" root ")"',
    "list": lambda r: (
        'root ::= item ("," item)*\nitem ::= ' + " | ".join(f'"{name(r)}"' for _ in range(8))
    ),
    "lark": lambda r: f'start: A B*\nA: "{name(r)}"\nB: /[a-f]{{1,{r.randrange(2, 9)}}}/',
}

TAGS: dict[str, Callable[[Random], Json]] = {
    "choice": lambda r: {"type": "choice", "choices": [name(r) for _ in range(5)]},
    "tag": lambda r: {
        "type": "tag",
        "begin": f"<{name(r)}>",
        "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
        "end": f"</{name(r)}>",
    },
    "sequence": lambda r: {
        "type": "sequence",
        "elements": [
            {"type": "const_string", "value": name(r)},
            {"type": "regex", "pattern": "[a-z]{1,9}"},
        ],
    },
    "text without": lambda r: {"type": "any_text", "excludes": [name(r)]},
}


def _of_schema(make: Callable[[Random], Json]) -> Kind:
    def ask(random: Random) -> Ask:
        schema = {"name": name(random), "schema": make(random)}
        return chat(random, response_format={"type": "json_schema", "json_schema": schema})

    return ask


def _of_tool(make: Callable[[Random], Json], choice: str) -> Kind:
    def ask(random: Random) -> Ask:
        function = {
            "name": name(random),
            "parameters": _object({"value": make(random)}),
            "strict": True,
        }
        return chat(random, tools=[{"type": "function", "function": function}], tool_choice=choice)

    return ask


def _of_schema_and_tool(make: Callable[[Random], Json]) -> Kind:
    def ask(random: Random) -> Ask:
        tool = _of_tool(make, "auto")(random)
        form = {
            "type": "json_schema",
            "json_schema": {"name": name(random), "schema": make(random)},
        }
        return Ask(tool.path, tool.body | {"response_format": form})

    return ask


def _of_regex(make: Callable[[Random], str]) -> Kind:
    return lambda random: completion(random, structured_outputs={"regex": make(random)})


def _of_grammar(make: Callable[[Random], str]) -> Kind:
    return lambda random: chat(random, guided_grammar=make(random))


def _of_tag(make: Callable[[Random], Json]) -> Kind:
    return lambda random: chat(
        random, response_format={"type": "structural_tag", "format": make(random)}
    )


CONSTRAINED: dict[str, Kind] = {
    **{f"schema: {shape}": _of_schema(make) for shape, make in SCHEMAS.items()},
    **{f"regex: {shape}": _of_regex(make) for shape, make in REGEXES.items()},
    **{f"grammar: {shape}": _of_grammar(make) for shape, make in GRAMMARS.items()},
    **{f"tag: {shape}": _of_tag(make) for shape, make in TAGS.items()},
    **{
        f"tool: {shape}": _of_tool(SCHEMAS[shape], "required")
        for shape in ("enum", "pattern", "nested", "any of")
    },
    **{
        f"tool, auto: {shape}": _of_tool(SCHEMAS[shape], "auto")
        for shape in ("string", "number", "array", "map")
    },
    "json object": lambda r: chat(r, response_format={"type": "json_object"}),
    "choices": lambda r: chat(
        r, structured_outputs={"choice": [name(r) for _ in range(r.randrange(2, 40))]}
    ),
    "schema and tools": _of_schema_and_tool(SCHEMAS["integer"]),
    "schema, several": lambda r: chat(r, n=3, structured_outputs={"json": _nested(r)}),
    "schema, beams": lambda r: completion(
        r,
        best_of=3,
        stream=False,
        use_beam_search=True,
        temperature=0,
        structured_outputs={"json": {"const": name(r)}},
    ),
}

FREE: dict[str, Kind] = {
    "chat": chat,
    "chat, same prompt": lambda r: chat(r, messages=[{"role": "user", "content": "heron " * 200}]),
    "chat, several": lambda r: chat(r, n=4, seed=r.randrange(99), temperature=1.0),
    "chat, logprobs": lambda r: chat(r, logprobs=True, top_logprobs=5),
    "chat, sampled": lambda r: chat(
        r, top_p=0.9, top_k=40, frequency_penalty=0.5, logit_bias={"5": 2}, stop=["e r"]
    ),
    "completion": completion,
    "completion, echo": lambda r: completion(r, echo=True, logprobs=2, max_tokens=2),
    "completion, prompts": lambda r: completion(r, prompt=[text(r, 5) for _ in range(4)]),
    "beams": lambda r: completion(
        r, best_of=4, n=2, use_beam_search=True, temperature=0, stream=False
    ),
    "response": lambda r: Ask(
        "/v1/responses", {"input": text(r, 20), "max_output_tokens": 16, "stream": r.random() < 0.5}
    ),
    "response, background": lambda r: Ask(
        "/v1/responses", {"input": text(r, 9), "background": True, "store": True}
    ),
    "response, not kept": lambda r: Ask(
        "/v1/responses", {"input": text(r, 9), "store": False, "max_output_tokens": 9}
    ),
    "conversation": lambda r: Ask("/v1/conversations", {"metadata": {name(r): text(r, 5)}}),
    "invocations": lambda r: Ask(
        "/invocations", {"inputs": text(r, 9), "parameters": {"max_new_tokens": 8}}
    ),
    "tokenize": lambda r: Ask("/tokenize", {"prompt": text(r, 500)}),
    "input tokens": lambda r: Ask("/v1/responses/input_tokens", {"input": text(r, 50)}),
    "unknown field": lambda r: chat(r, **{name(r): json.dumps(name(r))}),
    "models": lambda r: Ask("/v1/models", method="GET"),
    "metrics": lambda r: Ask("/metrics", method="GET"),
}

REFUSED: dict[str, Kind] = {
    "unknown path": lambda r: Ask(f"/v1/{name(r)}", method="GET"),
    "unknown response": lambda r: Ask(f"/v1/responses/resp_{name(r)}", method="GET"),
    "bad value": lambda r: chat(r, temperature=r.randrange(3, 99)),
    "bad schema": lambda r: chat(
        r,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": name(r)}},
        },
    ),
    "no text fits": lambda r: chat(
        r, structured_outputs={"json": {"type": "integer", "minimum": 9, "maximum": r.randrange(8)}}
    ),
    "bad regex": lambda r: chat(r, structured_outputs={"regex": f"({name(r)}"}),
    "costly number": lambda r: chat(
        r,
        structured_outputs={"json": {"type": "integer", "multipleOf": 99400891 + r.randrange(999)}},
    ),
    "too long": lambda r: chat(r, messages=[{"role": "user", "content": text(r, 30_000)}]),
}

KINDS: dict[str, Kind] = CONSTRAINED | FREE | REFUSED
