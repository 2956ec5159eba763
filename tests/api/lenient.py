"""Starts a server with --lenient-formats, and builds formats and tools for its requests."""

from contextlib import AbstractContextManager

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

CHAT = "/v1/chat/completions"
HEADER = "x-ouzel-format-ignored"
UNIQUE: Json = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
LOOKS_AHEAD: Json = {"type": "string", "pattern": "(?=a)"}
SAID = '{"name": "say"'
SAYS_YES: Json = {
    "type": "object",
    "properties": {"word": {"const": "yes"}},
    "required": ["word"],
    "additionalProperties": False,
}


def serve_lenient_formats() -> AbstractContextManager[RunningServer]:
    return running_server(
        engine_factory="create_grammar_parrot",
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        has_lenient_formats=True,
    )


def schema_format(schema: object) -> Json:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
    }


def tool(name: str, parameters: object, **fields: object) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **fields}}
