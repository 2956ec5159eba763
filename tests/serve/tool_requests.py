"""Draws random chat requests with tools, and says whether an answer is right.

The requests have each form of tool_choice and schemas of many kinds.

The schemas are closed and bounded, so that a model that chooses at random still comes to an end.
"""

import json
from collections.abc import Sequence
from random import Random

import jsonschema

from tests.serve.answers import Json

MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_")
QUESTIONS = (
    "Hello!",
    "What is the weather in Paris?",
    "What is 12 plus 30?",
    "Set a timer for 5 minutes.",
    "Find flights from Rome to Oslo.",
    "Who are you?",
    "Weather in London, and what is 3 plus 4?",
    "Écris <tool_call> à « José » !",
)


def _object(properties: Json, required: Sequence[str] | None = None) -> Json:
    names = list(properties) if required is None else list(required)
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


def _text(max_length: int = 8) -> Json:
    return {"type": "string", "maxLength": max_length}


def _integer(minimum: int, maximum: int) -> Json:
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


_GUEST = _object({"name": _text(), "role": {"enum": ["host", "guest", None]}}, ["name"])
_STEP = _object({"do": {"const": "wait"}, "then": {"anyOf": [{"const": "stop"}, {"type": "null"}]}})

PARAMETERS: dict[str, Json | None] = {
    "now": None,
    "stop": _object({}),
    "get_weather": _object(
        {"city": _text(12), "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, ["city"]
    ),
    "add": _object(
        {"a": _integer(-1000, 1000), "b": {"type": "number", "minimum": 0, "maximum": 9.5}}
    ),
    "set_timer": _object(
        {"minutes": {"type": "integer", "exclusiveMinimum": 0, "maximum": 90, "multipleOf": 5}}
    ),
    "flights": _object(
        {
            "from": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "to": {"type": "string", "minLength": 2, "maxLength": 6},
            "on": {"type": "string", "format": "date"},
            "direct": {"type": "boolean"},
        },
        ["to", "from"],
    ),
    "create_event": _object(
        {
            "when": _object({"day": _integer(1, 31), "hour": _integer(0, 23)}),
            "guests": {"type": "array", "items": _GUEST, "minItems": 1, "maxItems": 2},
            "remind": {
                "anyOf": [_integer(0, 60), {"type": "null"}],
                "default": None,
                "title": "Remind",
            },
        },
        ["when", "guests"],
    ),
    "bestellen": _object(
        {
            "straße": {"type": "string", "pattern": "^[a-zß]{1,6}$"},
            "数量": _integer(1, 9),
            'é"\n': {"const": "ö"},
        },
        ["数量"],
    ),
    "plan": _object({"first": {"$ref": "#/$defs/Step"}})
    | {"$defs": {"Step": _STEP}, "title": "Plan"},
    "move": _object(
        {
            "target": {
                "oneOf": [
                    _object(
                        {
                            "kind": {"const": "room"},
                            "room": {"enum": ["kitchen", "hall", "</tool_call>"]},
                        }
                    ),
                    _object(
                        {
                            "kind": {"const": "point"},
                            "at": {
                                "type": "array",
                                "items": _integer(0, 9),
                                "minItems": 2,
                                "maxItems": 2,
                            },
                        }
                    ),
                ]
            }
        }
    ),
    "web.search:v2/x-1": _object(
        {"tags": {"type": "array", "items": {"enum": ["a", "b", 1, 2.5, True]}, "maxItems": 4}}, []
    ),
}


def tool_request(random: Random) -> Json:
    """Draws a body without `stream`."""
    names = random.sample(sorted(PARAMETERS), random.choice((0, 1, 1, 2, 2, 3, 4, 6)))
    body: Json = {
        "model": "ouzel-demo",
        "messages": [{"role": "user", "content": random.choice(QUESTIONS)}],
        "temperature": random.choice((0, 1)),
        "seed": random.randrange(1000),
        "max_tokens": 400,
    }
    if names:
        body |= {"tools": [_tool(name, random) for name in names]}
        choice = _choice(names, random)
        body |= {} if choice is None else {"tool_choice": choice}
        body |= random.choice(
            ({}, {}, {"parallel_tool_calls": False}, {"parallel_tool_calls": True})
        )
        body |= random.choice(({}, {}, {"enable_tool_guided_generation": True}))
    if random.random() < 0.3:
        body["chat_template_kwargs"] = {"enable_thinking": random.random() < 0.8}
    return body


def _tool(name: str, random: Random) -> Json:
    function: Json = {"name": name}
    if PARAMETERS[name] is not None:
        function["parameters"] = PARAMETERS[name]
    if random.random() < 0.5:
        function["description"] = f"Calls {name}."
    if random.random() < 0.2:
        function["strict"] = random.random() < 0.7
    return {"type": "function", "function": function}


def _choice(names: Sequence[str], random: Random) -> Json | str | None:
    named = [{"type": "function", "function": {"name": name}} for name in names]
    some = random.sample(named, random.randint(1, len(named)))
    match random.choice(
        ("absent", "auto", "none", "required", "required", "named", "named", "allowed")
    ):
        case "absent":
            return None
        case "named":
            return random.choice(named)
        case "allowed":
            mode = random.choice(("auto", "required"))
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": some}}
        case word:
            return word


def allowed_names(body: Json) -> set[str]:
    """Returns the names of the tools that an answer may call."""
    names = {tool["function"]["name"] for tool in body.get("tools", [])}
    match body.get("tool_choice", "auto"):
        case "none":
            return set()
        case {"function": {"name": name}}:
            return {name}
        case {"allowed_tools": {"tools": tools}}:
            return {tool["function"]["name"] for tool in tools}
        case _:
            return names


def must_call(body: Json) -> bool:
    match body.get("tool_choice", "auto"):
        case "required" | {"function": _} | {"allowed_tools": {"mode": "required"}}:
            return True
        case _:
            return False


def may_call_once(body: Json) -> bool:
    """Tells whether more than one call would be wrong."""
    choice = body.get("tool_choice")
    return body.get("parallel_tool_calls") is False or (
        isinstance(choice, dict) and "function" in choice
    )


def obeys(name: str, body: Json) -> bool:
    """Whether calls of the tool have to fit their schema."""
    [function] = [tool["function"] for tool in body["tools"] if tool["function"]["name"] == name]
    strict = function.get("strict", False) or "parameters" not in function
    return must_call(body) or strict or body.get("enable_tool_guided_generation", False)


def fits(name: str, arguments: str) -> bool:
    """Tells whether the arguments are JSON that is valid by the tool's schema."""
    schema = PARAMETERS[name] or _object({})
    try:
        return jsonschema.Draft202012Validator(
            schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        ).is_valid(json.loads(arguments))
    except ValueError:
        return False
