"""Defines the field `prompt` of a response: the template, its version and the variables."""

from typing import Annotated

import msgspec
from msgspec import Meta

_PARTS = [
    {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": ["input_text", "input_image", "input_file"]}},
    }
]
Variable = Annotated[
    object,
    Meta(
        description="A text, or a part: input_text, input_image or input_file.",
        extra_json_schema={"anyOf": [{"type": "string"}, *_PARTS]},
    ),
]


class PromptReference(msgspec.Struct, frozen=True, kw_only=True):
    """Names a template of the server (`--prompts`) and fills in its variables."""

    id: Annotated[str, Meta(description="The id of the template.")]
    version: Annotated[
        str | None, Meta(description="The version of the template; by default its default version.")
    ] = None
    variables: Annotated[
        dict[str, Variable] | None, Meta(description="A value for each variable of the template.")
    ] = None
