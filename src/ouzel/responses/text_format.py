"""Reads the required form of the text of a response from `text.format` or chat fields."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import OutputForm
from ouzel.wire.response_form import JsonObject


class PlainFormat(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Allows any text."""


class JsonObjectFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_object"):
    """Requires a JSON object."""


class JsonSchemaFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_schema"):
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]+$",
            description="The name of the schema.",
        ),
    ]
    schema: Annotated[JsonObject, Meta(description="The JSON schema.")]
    description: Annotated[
        str | None, Meta(description="The purpose of the format; not shown to the model.")
    ] = None
    strict: Annotated[
        bool | None, Meta(description="Accepts only OpenAI's strict subset of JSON Schema.")
    ] = None


TextFormat = PlainFormat | JsonObjectFormat | JsonSchemaFormat


def choose_form(text_format: TextFormat | None, other: OutputForm | None) -> OutputForm | None:
    """Returns the required form of the text, None for any text.

    `other` is the form that fields of the chat API ask for. Raises InvalidRequest if both ask for
    a form.
    """
    own = _own_form(text_format)
    if own is not None and other is not None:
        raise InvalidRequest("must not be given beside text.format", field=other.param)
    return own or other


def shown_format(text_format: TextFormat | None, response_format: JsonObject | None) -> TextFormat:
    """Returns the format that the response object repeats.

    A `response_format` of the chat API is converted; one without a counterpart is shown as text.
    """
    shown = text_format or _convert_format(response_format)
    if isinstance(shown, JsonSchemaFormat):
        return msgspec.structs.replace(shown, strict=shown.strict or False)
    return shown


def _convert_format(response_format: JsonObject | None) -> TextFormat:
    if response_format is None:
        return PlainFormat()
    if response_format.get("type") == "json_object":
        return JsonObjectFormat()
    definition = response_format.get("json_schema")
    try:
        return msgspec.convert(
            {"name": "response", **msgspec.convert(definition, JsonObject)}, JsonSchemaFormat
        )
    except msgspec.ValidationError:
        return PlainFormat()


def _own_form(text_format: TextFormat | None) -> OutputForm | None:
    match text_format:
        case JsonSchemaFormat(schema=schema, strict=strict):
            form = {"type": "json_schema", "json_schema": schema}
            return OutputForm(form, "text.format.schema", strict=strict or False)
        case JsonObjectFormat():
            return OutputForm({"type": "json_object"}, "text.format")
        case _:
            return None
