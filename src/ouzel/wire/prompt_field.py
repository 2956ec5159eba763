"""Reads the `prompt` field of completions: a text, texts, token ids, or lists of token ids."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import show_value

OnePrompt = str | list[int]

_TOKEN_ID = {"type": "integer", "minimum": 0}
_ENTRIES = [{"type": "string"}, _TOKEN_ID, {"type": "array", "minItems": 1, "items": _TOKEN_ID}]

PromptField = Annotated[
    str
    | Annotated[
        list[Annotated[object, Meta(extra_json_schema={"anyOf": _ENTRIES})]],
        Meta(min_length=1, extra_json_schema={"oneOf": [{"items": entry} for entry in _ENTRIES]}),
    ],
    Meta(description="A text, a list of texts, a list of token ids, or a list of such lists."),
]


def read_prompts(
    prompt: str | list[object], *, max_prompts: int, n: int
) -> list[tuple[str, OnePrompt]]:
    """Returns every prompt with its path in the body.

    Raises InvalidRequest for more than `max_prompts`, where each of `n` choices counts as one.
    """
    if isinstance(prompt, str):
        return [("prompt", prompt)]
    if not prompt or not isinstance(prompt[0], str | list):
        return [("prompt", _token_ids("prompt", prompt))]
    most = max(max_prompts // n, 1)
    if len(prompt) > most:
        raise InvalidRequest(
            f"must have <= {most} entries when n is {n}, given {len(prompt)}; "
            "send them in several requests",
            field="prompt",
        )
    read = _text if isinstance(prompt[0], str) else _token_ids
    paths = [f"prompt[{position}]" for position in range(len(prompt))]
    return [(path, read(path, entry)) for path, entry in zip(paths, prompt, strict=True)]


def _text(path: str, entry: object) -> str:
    if not isinstance(entry, str):
        raise InvalidRequest(
            f"must be a text, as prompt[0] is, given {show_value(entry)}", field=path
        )
    return entry


def _token_ids(path: str, entry: object) -> list[int]:
    try:
        token_ids: list[int] = msgspec.convert(entry, Annotated[list[int], Meta(min_length=1)])
    except msgspec.ValidationError as error:
        kinds = (
            "a text or a non-empty list of token ids"
            if path == "prompt"
            else "a non-empty list of token ids"
        )
        raise InvalidRequest(f"must be {kinds}, given {show_value(entry)}", field=path) from error
    return token_ids
