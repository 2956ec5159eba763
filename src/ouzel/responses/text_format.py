"""The form of a response's text is that of `text.format`, or of the chat's fields for it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import OutputForm
from ouzel.wire.response_form import JsonObject


class PlainFormat(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Any text will do."""


class JsonObjectFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_object"):
    """Any JSON object will do."""


class JsonSchemaFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_schema"):
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]+$",
            description="What the schema is called.",
        ),
    ]
    schema: Annotated[JsonObject, Meta(description="The JSON schema.")]
    description: Annotated[
        str | None, Meta(description="What the format is for; not shown to the model.")
    ] = None
    strict: Annotated[
        bool | None, Meta(description="Only the subset of JSON Schema that OpenAI calls strict.")
    ] = None


TextFormat = PlainFormat | JsonObjectFormat | JsonSchemaFormat


def form_of(text_format: TextFormat | None, other: OutputForm | None) -> OutputForm | None:
    """Returns the form of the text, None for any text. `other` is what the chat's fields ask for.

    Raises InvalidRequest where there are both.
    """
    own = _own_form(text_format)
    if own is not None and other is not None:
        raise InvalidRequest("must not be given beside text.format", field=other.param)
    return own or other


def shown_format(text_format: TextFormat | None, response_format: JsonObject | None) -> TextFormat:
    """Returns the format that the response repeats; a form of the chat's that has none here counts as plain text."""
    shown = text_format or _format_of(response_format)
    if isinstance(shown, JsonSchemaFormat):
        return msgspec.structs.replace(shown, strict=shown.strict or False)
    return shown


def _format_of(response_format: JsonObject | None) -> TextFormat:
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
