"""Writes docs/reference/fields.md from the code: `uv run python -m tools.documents.fields`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON Schema

import msgspec

from ouzel.api.document.openapi import body_schemas
from ouzel.api.lmi.standard import Parameters, StandardRequest
from ouzel.api.operations import DOCUMENTED
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.wire.aliases import ALIASES
from ouzel.wire.fields import CompletionFields
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import INSTEAD, NEUTRAL_VALUES

PATH = Path(__file__).parents[2] / "docs" / "reference" / "fields.md"
COMMAND = "uv run python -m tools.documents.fields"

JsonSchema = dict[str, Any]  # Any: schemas have many shapes

_INTRODUCTION = """\
# Request fields

This page has every field of the requests. `GET /openapi.json` has the same facts for machines.

- A field works in whole answers and in streams, unless the table says otherwise.
- `all` means all endpoints that generate. `/responses/input_tokens`, and a path that ends with
  `/render`, take the same fields as the path before it.
- `null` is the same as no field. There is one exception: `max_tokens` of `/completions`, where
  `null` means the rest of the context.
- An integer may be written `1.0`, and a number may stand inside a string. Booleans are `true` and
  `false` only.
- If a request has no value for a sampling parameter, the model's `generation_config.json` gives it
  ({from_model}), else the default in the table.
- A field outside the tables is ignored, with a line in the server's log. The same holds for an
  unknown field inside a tool or another object, unless the object refuses it with a 400.

Generated from the code by `{command}`; a test compares both.

## Fields that work

| field | endpoints | type and range | default | effect |
|---|---|---|---|---|
"""

_LMI = """
## Fields of LMI's own schema

A body with `inputs` on `/invocations` and the other paths of LMI has these fields. `parameters` has
the sampling fields above too.

| field | type and range | default | effect |
|---|---|---|---|
"""

_REFUSED = """
## Fields that are refused

Ouzel knows these fields from OpenAI, vLLM, OpenVINO Model Server, LMI and others, or from another
endpoint, and does not honour them. A request with such a field is a 400, unless the value has no
effect. `null` has no effect.

| field | endpoints | values without effect | instead |
|---|---|---|---|
"""


_HINTS = """
## Fields that are taken as hints

A hint changes no answer. The server answers a request with a hint, and a line in the log names the
hint. `store` of `/responses` and `prediction` of `/chat/completions` are fields that work.

| field | reason |
|---|---|
"""


def fields_document() -> str:
    text = _INTRODUCTION.format(
        command=COMMAND, from_model=", ".join(SamplingDefaults.__struct_fields__)
    )
    text += "".join(f"| {' | '.join(row)} |\n" for row in _rows_of_fields())
    text += _LMI
    text += "".join(f"| {' | '.join(row)} |\n" for row in _rows_of_lmi())
    text += _HINTS + "".join(f"| `{name}` | {reason} |\n" for name, reason in sorted(HINTS.items()))
    text += _REFUSED
    return text + "".join(f"| {' | '.join(row)} |\n" for row in _rows_of_refused())


def _endpoints() -> dict[str, type[msgspec.Struct]]:
    """Returns the endpoints and their bodies, except bodies that inherit from another body."""
    paths: dict[type[msgspec.Struct], str] = {}
    for operation in DOCUMENTED:
        body = operation.bodies[0] if operation.bodies else operation.form_body
        if body is not None and operation.words == "openai":
            paths.setdefault(body, operation.path.removeprefix("/v1"))
    return {path: body for body, path in paths.items() if not set(body.__mro__[1:]) & paths.keys()}


def _generating() -> list[str]:
    generating = [
        operation
        for operation in DOCUMENTED
        if operation.bodies and "generate" in operation.main_tasks
    ]
    return [
        operation.path.removeprefix("/v1")
        for operation in generating
        if operation.words == "openai"
    ]


def _rows_of_fields() -> Iterator[list[str]]:
    """Yields one row for each different description of a field's name."""
    schemas: JsonSchema = msgspec.convert(body_schemas(DOCUMENTED), dict[str, Any])
    endpoints: dict[tuple[str, ...], list[str]] = {}
    for endpoint, body in _endpoints().items():
        for row in _list_fields(schemas[body.__name__], schemas, ""):
            endpoints.setdefault(row, []).append(endpoint)
    for (name, *rest), known in sorted(endpoints.items()):
        yield [f"`{name}`", _listed(known), *rest]


def _rows_of_lmi() -> Iterator[list[str]]:
    schemas: JsonSchema = msgspec.convert(body_schemas(DOCUMENTED), dict[str, Any])
    own = set(Parameters.__annotations__)
    for name, *rest in _list_fields(schemas[StandardRequest.__name__], schemas, ""):
        _, _, parameter = name.partition(".")
        if (
            parameter.partition(".")[0]
            not in {*CompletionFields.__struct_encode_fields__, *ALIASES} - own
        ):
            yield [f"`{name}`", *rest]


def _list_fields(
    schema: JsonSchema, schemas: JsonSchema, prefix: str
) -> Iterator[tuple[str, str, str, str]]:
    for name, field in schema["properties"].items():
        description, _, default = field["description"].partition(" Default: ")
        required = (
            "**required**" if name in schema.get("required", ()) else default.removesuffix(".")
        )
        yield prefix + name, _type_in_words(field), required, description
        for kind in field.get("anyOf", []):
            if "$ref" in kind:
                yield from _list_fields(
                    schemas[kind["$ref"].rpartition("/")[2]], schemas, f"{prefix}{name}."
                )


def _type_in_words(schema: JsonSchema) -> str:
    match schema:
        case {"anyOf": kinds}:
            words = " or ".join(
                dict.fromkeys(_type_in_words(kind) for kind in kinds if kind != {"type": "null"})
            )
        case {"enum": values}:
            words = ", ".join(f"`{_json(value)}`" for value in values)
        case {"type": "array", "items": items}:
            entries = _type_in_words(items)
            named = f"({entries})" if " or " in entries else entries
            words = f"list of {named}{_length(schema, 'Items', 'entries')}"
        case {"type": "object", "additionalProperties": dict(values)}:
            words = f"object of {_type_in_words(values)}{_length(schema, 'Properties', 'entries')}"
        case {"type": "string", "format": "binary"}:
            words = "file"
        case {"type": "string"}:
            words = f"string{_length(schema, 'Length', 'characters')}"
        case {"type": str(kind)}:
            words = kind + _range(schema)
        case {"$ref": _}:
            words = "object"
        case _:
            words = "any value"
    return words


def _range(schema: JsonSchema) -> str:
    bounds = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    shown = [f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema]
    return f" {' and '.join(shown)}" if shown else ""


def _length(schema: JsonSchema, of: str, unit: str) -> str:
    bounds = {f"min{of}": "at least", f"max{of}": "at most"}
    shown = [f"{limit} {schema[key]}" for key, limit in bounds.items() if key in schema]
    return f" ({', '.join(shown)} {unit})" if shown else ""


def _rows_of_refused() -> Iterator[list[str]]:
    for name, neutral in sorted(NEUTRAL_VALUES.items()):
        bodies = {endpoint: _endpoints()[endpoint] for endpoint in _generating()}
        refusing = [
            endpoint
            for endpoint, body in bodies.items()
            if name not in body.__struct_encode_fields__
        ]
        if refusing:
            values = ", ".join(f"`{_json(value)}`" for value in neutral)
            instead = f"`{INSTEAD[name]}`" if name in INSTEAD else ""
            yield [f"`{name}`", _listed(refusing), values, instead]


def _listed(endpoints: list[str]) -> str:
    return (
        "all"
        if endpoints == _generating()
        else ", ".join(f"`{endpoint}`" for endpoint in endpoints)
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    PATH.write_text(fields_document())
