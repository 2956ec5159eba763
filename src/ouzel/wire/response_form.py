"""Reads the fields that demand a form of the output, under all names in use.

A request may have one of them.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import OutputForm
from ouzel.wire.validation_errors import NOT_A_FIELD, show_value

JsonObject = dict[str, object]

# Maps each field to the kind of its value.
_KIND_OF_FIELD: Mapping[str, str] = {
    "guided_json": "json",  # vLLM's
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "json_schema": "json",  # llama.cpp's
    "grammar": "grammar",  # llama.cpp's and TGI's
    "regex": "regex",  # SGLang's
    "ebnf": "grammar",
}
# keys beside the schema in OpenAI's `json_schema`
_BESIDE_SCHEMA = {"name", "description", "strict"}

Schema = Annotated[
    JsonObject | str | bool | None,
    Meta(description="A JSON schema, or its JSON text in a string."),
]
Pattern = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=10_000,
        description="A regular expression that the whole output matches.",
    ),
]
Choices = Annotated[
    list[str], Meta(min_length=1, max_length=1000, description="The texts that the output may be.")
]
GrammarText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=262_144,
        description="A grammar in EBNF (`root ::= …`) or Lark (`start: …`).",
    ),
]
Grammar = (
    GrammarText
    | Annotated[
        JsonObject,
        Meta(
            description="Or TGI's form, an object with type (json or regex) and value.",
            extra_json_schema={
                "required": ["type", "value"],
                "properties": {"type": {"enum": ["json", "regex"]}},
            },
        ),
    ]
)
ResponseFormat = Annotated[
    JsonObject,
    Meta(
        description="text, json_object (optionally with a schema), json_schema, or one of "
        "XGrammar's structural-tag formats.",
        extra_json_schema={"required": ["type"], "properties": {"type": {"type": "string"}}},
    ),
]


class StructuredOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form of the output in vLLM's fields. A request has exactly one of the fields."""

    json: Schema = None
    regex: Pattern | None = None
    choice: Choices | None = None
    grammar: GrammarText | None = None
    json_object: Annotated[bool | None, Meta(description="Any JSON object.")] = None
    structural_tag: Annotated[
        JsonObject | str | None,
        Meta(description="A structural tag, or its JSON text in a string."),
    ] = None


class FormFields(Protocol):
    """Declares the fields that demand a form; a protocol, because a struct has one base."""

    response_format: JsonObject | None
    structured_outputs: StructuredOutputs | None
    guided_json: JsonObject | str | bool | None
    guided_regex: str | None
    guided_choice: list[str] | None
    guided_grammar: str | None
    json_schema: JsonObject | str | bool | None
    regex: str | None
    ebnf: str | None
    grammar: str | JsonObject | None


def output_form(body: FormFields, *, is_lenient: bool = False) -> tuple[OutputForm | None, str]:
    """Returns the demanded form, or None for any text, and the reason why the form is unreadable.

    The reason is empty if the form is readable. An unreadable form raises InvalidRequest unless
    `is_lenient`; a second form always does.
    """
    try:
        forms = list(_forms(body))
    except InvalidRequest as error:
        if is_lenient:
            return None, str(error)
        raise
    if len(forms) > 1:
        second = forms[1].param
        raise InvalidRequest(f"must not be given beside {forms[0].param}", field=second)
    return (forms[0] if forms else None), ""


def _forms(body: FormFields) -> Iterator[OutputForm]:
    if body.response_format is not None:
        form = _read_response_format(body.response_format)
        if form is not None:
            yield form
    if body.structured_outputs is not None:
        yield _read_structured_outputs(body.structured_outputs)
    for name, kind in _KIND_OF_FIELD.items():
        value = getattr(body, name)
        if isinstance(value, dict) and kind == "grammar":
            yield _read_tgi_grammar(value, name)
        elif value is not None:
            yield _make_form(kind, value, name)


def _read_response_format(response_format: JsonObject) -> OutputForm | None:
    kind = response_format.get("type")
    if not isinstance(kind, str):
        complaint = "is required" if kind is None else f"must be a string, given {show_value(kind)}"
        raise InvalidRequest(complaint, field="response_format.type")
    if kind == "text":
        _refuse_unknown(response_format, {"type"}, "response_format")
        return None
    if kind in ("json_object", "json_schema"):
        response_format = {
            name: value for name, value in response_format.items() if value is not None
        }
        if "schema" in response_format and "json_schema" not in response_format:  # llama.cpp's
            _refuse_unknown(response_format, {"type", "schema"}, "response_format")
            return _make_form("json", response_format["schema"], "response_format.schema")
    return (
        _read_json_schema(response_format)
        if kind == "json_schema"
        else OutputForm(response_format, "response_format")
    )


def _read_tgi_grammar(grammar: JsonObject, path: str) -> OutputForm:
    """Reads TGI's form: an object with `type` and `value`."""
    kind = grammar.get("type")
    if kind not in ("json", "regex"):
        raise InvalidRequest(
            f'must be "json" or "regex", given {show_value(kind)}', field=f"{path}.type"
        )
    _refuse_unknown(grammar, {"type", "value"}, path)
    if grammar.get("value") is None:
        raise InvalidRequest("is required", field=f"{path}.value")
    return _make_form(kind, grammar["value"], f"{path}.value")


def _read_json_schema(response_format: JsonObject) -> OutputForm:
    """Reads OpenAI's `json_schema`, an object with name and schema, or XGrammar's bare schema."""
    path, definition = "response_format.json_schema", response_format.get("json_schema")
    if not isinstance(definition, dict | bool):
        raise InvalidRequest(f"must be an object, given {show_value(definition)}", field=path)
    if isinstance(definition, bool) or not (
        "schema" in definition or {"name"} <= definition.keys() <= _BESIDE_SCHEMA
    ):
        return OutputForm(response_format, "response_format")
    if "schema" not in definition:
        raise InvalidRequest("is required", field=f"{path}.schema")
    _refuse_unknown(definition, {"schema", *_BESIDE_SCHEMA}, path)
    strict = definition.get("strict")
    if not isinstance(strict, bool | None):
        raise InvalidRequest(
            f"must be true or false, given {show_value(strict)}", field=f"{path}.strict"
        )
    form = {**response_format, "json_schema": definition["schema"]}
    return OutputForm(form, f"{path}.schema", strict=strict or False)


def _refuse_unknown(fields: JsonObject, known_names: Collection[str], path: str) -> None:
    for name, value in fields.items():
        if name not in known_names and value is not None:
            param = f"{path}.{name[:40]}"
            raise InvalidRequest(f"{NOT_A_FIELD}, given {show_value(value)}", field=param)


def _read_structured_outputs(outputs: StructuredOutputs) -> OutputForm:
    kinds = {
        name: value
        for name, value in msgspec.structs.asdict(outputs).items()
        if value not in (None, False)
    }
    if len(kinds) != 1:
        names = ", ".join(StructuredOutputs.__struct_fields__)
        raise InvalidRequest(
            f"must have exactly one of {names}, given {len(kinds)}", field="structured_outputs"
        )
    [(kind, value)] = kinds.items()
    return _make_form(kind, value, f"structured_outputs.{kind}")


def _make_form(kind: str, value: object, param: str) -> OutputForm:
    if kind in ("json", "structural_tag") and isinstance(value, str):
        value = _parse(value, param)
    formats: Mapping[str, JsonObject] = {
        "json": {"type": "json_schema", "json_schema": value},
        "regex": {"type": "regex", "pattern": value},
        "choice": {"type": "choice", "choices": value},
        "grammar": {"type": "grammar", "grammar": value},
        "json_object": {"type": "json_object"},
    }
    if kind == "structural_tag":
        if not isinstance(value, dict):
            raise InvalidRequest(f"must be an object, given {show_value(value)}", field=param)
        return OutputForm(value, param)
    return OutputForm(formats[kind], param)


def _parse(text: str, param: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(f"is not valid JSON: {error}", field=param) from error
