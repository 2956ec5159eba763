"""Converts values that a format writes as bare text into JSON, by the types in the parameter's
schema.
"""

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import Never

from ouzel.parsers.reading_parser import WHITESPACE
from ouzel.types.tools import FunctionTool

_TYPES = frozenset({"string", "number", "boolean", "null", "object", "array"})
_MAX_LEVELS = 32  # nested schemas
_JSON_STARTS = '{["-0123456789tfn'
# Python's parser warns about the code in a model's text.
warnings.filterwarnings("ignore", module="<unknown>")

_MAX_LITERAL = 2**13  # characters; Python's parser takes 5 us for each
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)  # a string or the beginning of one
_SURROGATE = re.compile("[\ud800-\udfff]")
_PYTHON_ONLY = re.compile("['(TFN]")  # strings, tuples and constants
# Spellings of constants in Python and by models -> JSON.
_CONSTANTS = {"true": "true", "false": "false", "null": "null", "none": "null"}


@dataclass(frozen=True, slots=True)
class ValueType:
    """The JSON types that a schema allows (an integer is a number), and the strings that it
    lists.
    """

    types: frozenset[str] = _TYPES
    texts: frozenset[str] = frozenset()

    @property
    def is_text(self) -> bool:
        return self.types == {"string"}

    def is_text_from(self, start: str) -> bool:
        """Tells whether a value that begins with `start` can only be a string."""
        start = start.lstrip(WHITESPACE)
        if self.is_text:
            return True
        return "string" in self.types and start != "" and start[0] not in _JSON_STARTS


def parameter_type(tool: FunctionTool | None, name: str) -> ValueType:
    """Returns the type of a parameter; all types if the schema does not say."""
    root = (tool.parameters if tool else None) or {}
    schema = _property(root, name, root)
    listed = _resolve(schema, root)
    values = listed.get("enum", [listed["const"]] if "const" in listed else [])
    if not isinstance(values, list):
        values = []
    texts = (value for value in values if isinstance(value, str))
    return ValueType(_types(schema, root), frozenset(texts))


def json_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def in_json_string(text: str) -> str:
    """Returns the text escaped for a JSON string, without quotes."""
    return json_string(text)[1:-1]


def json_text(text: str, value_type: ValueType) -> str:
    """Writes bare text as a JSON value if the type allows one, else as a string.

    Digits and spacing stay unchanged, except in Python notation.
    """
    if value_type.is_text or text in value_type.texts:
        return json_string(text)
    value = text.strip(WHITESPACE)
    kind = json_type(value)
    is_quoted = kind == "string" and value_type.types != _TYPES  # the quotes belong to the string
    if (kind in value_type.types and not is_quoted) or (kind and "string" not in value_type.types):
        return value
    if "string" not in value_type.types and value.lower() in _CONSTANTS:
        return _CONSTANTS[value.lower()]
    if kind is None and "string" not in value_type.types:
        return _convert_literal(value, value_type) or json_string(text)
    return json_string(text)


def _convert_literal(text: str, value_type: ValueType) -> str | None:
    """Converts a list or an object in Python's notation, which some models write, to JSON; else
    None.
    """
    if len(text) > _MAX_LITERAL or not text.startswith(("{", "[", "(")):
        return None
    try:
        value = ast.literal_eval(text)
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    kind = "array" if isinstance(value, tuple) else _name_json_type(value)
    if kind not in value_type.types:
        return None
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", written)


def json_start(text: str, value_type: ValueType) -> str:
    """Writes the beginning of a value that was cut off, unless it could have become something
    else.
    """
    value = text.strip(WHITESPACE)
    if value.startswith(("{", "[")) and _PYTHON_ONLY.search(_JSON_STRING.sub("", value)):
        return ""
    starts = "{[" if "string" in value_type.types else _JSON_STARTS
    return value if value.startswith(tuple(starts)) else ""


def json_type(text: str) -> str | None:
    """Returns the JSON type of a text, or None if it is not JSON. Numbers may have any length."""
    try:
        value = json.loads(text, parse_int=float, parse_float=float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return _name_json_type(value)


def _refuse(constant: str) -> Never:
    raise ValueError(constant)  # NaN and Infinity are not JSON


def _name_json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def _property(schema: object, name: str, root: dict[str, object], level: int = 0) -> object:
    """Returns the schema of one property, or {} if there is none."""
    resolved = _resolve(schema, root)
    properties = resolved.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name]
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = resolved.get(keyword)
        for part in parts if isinstance(parts, list) and level < _MAX_LEVELS else []:
            if found := _property(part, name, root, level + 1):
                return found
    return resolved.get("additionalProperties", {}) if level == 0 else {}


def _resolve(schema: object, root: dict[str, object]) -> dict[str, object]:
    """Follows a chain of references within the document and returns the schema at its end."""
    for _ in range(_MAX_LEVELS):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        schema = _at_pointer(root, reference)
    return schema if isinstance(schema, dict) else {}


def _at_pointer(root: dict[str, object], reference: str) -> object:
    found: object = root
    for part in reference.split("/")[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _types(schema: object, root: dict[str, object], level: int = 0) -> frozenset[str]:
    resolved = _resolve(schema, root)
    types = _TYPES
    if level >= _MAX_LEVELS:
        return types
    if "type" in resolved:
        names = resolved["type"] if isinstance(resolved["type"], list) else [resolved["type"]]
        types &= {"number" if name == "integer" else name for name in names}
    if isinstance(values := resolved.get("enum"), list):
        types &= {_name_json_type(value) for value in values}
    if "const" in resolved:
        types &= {_name_json_type(resolved["const"])}
    for keyword in ("anyOf", "oneOf"):
        if isinstance(parts := resolved.get(keyword), list):
            types &= frozenset().union(*(_types(part, root, level + 1) for part in parts))
    for part in parts if isinstance(parts := resolved.get("allOf"), list) else []:
        types &= _types(part, root, level + 1)
    return types or _TYPES
