"""Defines the JSON Schema of the field `input` in the OpenAPI document; `input_items` checks it."""

from typing import Annotated

from msgspec import Meta

from ouzel.wire.message_schema import DETAILS


def _object(kind: str, required: tuple[str, ...], **properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "required": ["type", *required],
        "properties": {"type": {"enum": [kind]}, **properties},
    }


def _or_null(schema: dict[str, object]) -> dict[str, object]:
    return {"anyOf": [schema, {"type": "null"}]}


_STRING: dict[str, object] = {"type": "string"}
_PICTURE_URL = {
    "type": "string",
    "minLength": 1,
    "description": "An object with `url` and `detail`, as in a chat, is accepted too.",
}
_PICTURE = {
    **_object(
        "input_image", ("image_url",), image_url=_PICTURE_URL, detail={"enum": [*DETAILS, None]}
    ),
    "description": "Only for a model that reads images.",
}
_FILE = {
    **_object(
        "input_file",
        (),
        file_data={"type": ["string", "null"], "description": "A data URL or base64."},
        file_url={
            "type": ["string", "null"],
            "description": "A URL or a path, where the operator allows it.",
        },
        filename={
            "type": ["string", "null"],
            "description": "Not used: the file itself tells its format.",
        },
        detail={"enum": [*DETAILS, None]},
    ),
    "description": "A PDF: each page becomes an image; for a model without images, a text.",
}
_SOUND = {
    **_object(
        "input_audio",
        ("input_audio",),
        input_audio={
            "type": "object",
            "required": ["data"],
            "properties": {
                "data": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Base64 of a sound file, or a data URL.",
                },
                "format": {
                    "type": ["string", "null"],
                    "description": "wav, mp3 or another kind of file. The bytes tell it as well.",
                },
            },
        },
    ),
    "description": "Only for a model that hears.",
}
_OUTPUT_PARTS = {
    "type": "array",
    "items": {"anyOf": [_object("input_text", ("text",), text=_STRING), _PICTURE, _FILE]},
}
_PARTS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "anyOf": [
            _object("input_text", ("text",), text=_STRING),
            _object("output_text", ("text",), text=_STRING),
            _object("refusal", ("refusal",), refusal=_STRING),
            _PICTURE,
            _FILE,
            _SOUND,
        ]
    },
}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "type": {"enum": ["message"]},
        "role": {"enum": ["user", "assistant", "system", "developer"]},
        "content": {"anyOf": [_STRING, _PARTS]},
    },
}
_NAME: dict[str, object] = {"type": "string", "minLength": 1}
_NAMESPACE = {"type": ["string", "null"]}
_OUTPUT = {"anyOf": [_STRING, _OUTPUT_PARTS]}
_HOSTED = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["mcp_approval_request", "mcp_call", "mcp_list_tools", "web_search_call"]}
    },
    "description": "An item of an earlier response, sent back as it came.",
}
_ITEMS = [
    _MESSAGE,
    _object(
        "function_call",
        ("name", "arguments"),
        call_id=_or_null(_NAME),
        name=_NAME,
        namespace=_NAMESPACE,
        arguments=_STRING,
    ),
    _object("function_call_output", ("output",), call_id=_or_null(_NAME), output=_OUTPUT),
    _object(
        "custom_tool_call",
        ("call_id", "name", "input"),
        call_id=_NAME,
        name=_NAME,
        namespace=_NAMESPACE,
        input=_STRING,
    ),
    _object("custom_tool_call_output", ("call_id", "output"), call_id=_NAME, output=_OUTPUT),
    _object(
        "reasoning",
        (),
        summary=_or_null(
            {"type": "array", "items": _object("summary_text", ("text",), text=_STRING)}
        ),
        content=_or_null(
            {"type": "array", "items": _object("reasoning_text", ("text",), text=_STRING)}
        ),
        encrypted_content=_or_null(_STRING),
    ),
    _object(
        "mcp_approval_response",
        ("approval_request_id", "approve"),
        approval_request_id=_NAME,
        approve={"type": "boolean"},
        reason=_or_null(_STRING),
    ),
    _HOSTED,
    _object("compaction", ("encrypted_content",), encrypted_content=_NAME),
    _object("item_reference", ("id",), id=_NAME),
]

Items = list[Annotated[object, Meta(extra_json_schema={"anyOf": _ITEMS})]]

Input = Annotated[
    object,
    Meta(
        description="A text, or a list of items: messages, function calls and their outputs, "
        "reasoning. May be empty or left out in a request that continues a response or a "
        "conversation.",
        extra_json_schema={
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"anyOf": _ITEMS}},
            ]
        },
    ),
]
