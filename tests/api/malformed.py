"""Wrong requests, generated from the OpenAPI document: each breaks one field in one way."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any  # JSON Schema

import msgspec

from ouzel.api.document.openapi import build_document
from ouzel.api.operations import DOCUMENTED
from ouzel.wire.aliases import ALIASES
from ouzel.wire.unsupported import NEUTRAL_VALUES
from tests.api.requests import Json

JsonSchema = dict[str, Any]

_HUGE_NUMBER = 10**400
_SAMPLES: dict[str, list[object]] = {
    "null": [],  # null is the same as a missing field
    "boolean": [True],
    "integer": [5],
    "number": [0.5],
    "string": ["neither a number nor a word that is known here"],
    "array": [[], [[[1]]]],
    "object": [{}, {"a": {"b": {"c": 1}}}],
}
_DEEP: object = "deep"
for _ in range(200):
    _DEEP = [{"a": _DEEP}]


@dataclass(frozen=True)
class Malformed:
    path: str
    field: str
    what: str
    body: Json


# A body with more strings is refused before the server knows their field.
MAX_STRINGS = 2**18


@cache
def _schemas() -> JsonSchema:
    schemas: JsonSchema = msgspec.to_builtins(build_document(DOCUMENTED))["components"]["schemas"]
    return schemas


def malformed_requests(path: str, good: Json) -> Iterator[Malformed]:
    """Yields copies of the correct body `good`, each with one wrong field."""
    schemas = _schemas()
    [(body_type,)] = [
        operation.bodies for operation in DOCUMENTED if operation.path == path and operation.bodies
    ]
    schema = schemas[body_type.__name__]
    for name, field in schema["properties"].items():
        if name in ALIASES and name not in body_type.__struct_encode_fields__:
            continue  # the server reads an alias as the field that it stands for
        for what, value in _wrong_values(field, schemas):
            yield Malformed(path, name, what, {**good, name: value})
        if name in schema.get("required", ()):
            yield Malformed(
                path, name, "missing", {key: value for key, value in good.items() if key != name}
            )
            if not any(kind.get("type") == "null" for kind in _kinds(field, schemas)):
                yield Malformed(path, name, "null", {**good, name: None})
    for name, neutral in NEUTRAL_VALUES.items():
        if name not in schema["properties"]:
            value = next(each for each in ("x", 7, {"a": 1}) if each not in neutral)
            yield Malformed(
                path, name, "not supported", {"presence_penalty": 1, **good, name: value}
            )


def _wrong_values(field: JsonSchema, schemas: JsonSchema) -> Iterator[tuple[str, object]]:
    kinds = list(_kinds(field, schemas))
    accepted = {
        kind.get("type") or type(kind["enum"][0]).__name__.replace("str", "string")
        for kind in kinds
    }
    for json_type, samples in _SAMPLES.items():
        if json_type not in accepted and not (json_type == "integer" and "number" in accepted):
            yield from ((f"{json_type} instead", sample) for sample in samples)
    if "array" not in accepted:
        yield "deep", _DEEP
    if accepted & {"integer", "number"}:
        yield "huge", _HUGE_NUMBER
        yield "huge text", "9" * 5000
    for kind in kinds:
        yield from _out_of_range(kind)
        if "items" in kind and kind["items"].get("type"):
            yield from (
                (f"entry: {what}", [wrong]) for what, wrong in _wrong_values(kind["items"], schemas)
            )
        if isinstance(values := kind.get("additionalProperties"), dict) and "type" in values:
            yield from (
                (f"entry: {what}", {"5": wrong}) for what, wrong in _wrong_values(values, schemas)
            )
        if kind.get("additionalProperties") is False:
            yield "unknown key", {"unknown": 1}
            for name, inner in kind["properties"].items():
                yield from (
                    (f"{name}: {what}", {name: wrong})
                    for what, wrong in _wrong_values(inner, schemas)
                )


def _out_of_range(kind: JsonSchema) -> Iterator[tuple[str, object]]:
    limits: dict[str, Any] = {
        "minimum": lambda limit: limit - 1,
        "exclusiveMinimum": lambda limit: limit,
        "maximum": lambda limit: limit + 1,
        "exclusiveMaximum": lambda limit: limit,
        "minLength": lambda limit: "x" * (limit - 1),
        "maxLength": lambda limit: "x" * (limit + 1),
        "minItems": lambda limit: [kind["items"]] * (limit - 1),
        "maxItems": lambda limit: ["5" if limit < MAX_STRINGS else 5] * (limit + 1),
        "maxProperties": lambda limit: {str(key): "5" for key in range(limit + 1)},
        "enum": lambda values: f"{values[0]} or another",
    }
    for name, wrong in limits.items():
        if name in kind:
            yield name, wrong(kind[name])


def _kinds(field: JsonSchema, schemas: JsonSchema) -> Iterator[JsonSchema]:
    """Yields the alternative schemas of a field; references are replaced by their schemas."""
    if "$ref" in field:
        yield from _kinds(schemas[field["$ref"].rpartition("/")[2]], schemas)
    elif "anyOf" in field:
        for kind in field["anyOf"]:
            yield from _kinds(kind, schemas)
    else:
        yield field
