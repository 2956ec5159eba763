"""Defines the fields that embeddings and scores share, and reads the `input` of embeddings."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.endpoint.vector_maker import MAX_TEXTS
from ouzel.errors import InvalidRequest
from ouzel.wire.model_name import ModelName
from ouzel.wire.validation_errors import show_value

OneInput = str | list[int]

_TOKEN_ID = {"type": "integer", "minimum": 0}
_ENTRIES = [{"type": "string"}, _TOKEN_ID, {"type": "array", "minItems": 1, "items": _TOKEN_ID}]

InputField = Annotated[
    str
    | Annotated[
        list[Annotated[object, Meta(extra_json_schema={"anyOf": _ENTRIES})]],
        Meta(min_length=1, extra_json_schema={"oneOf": [{"items": entry} for entry in _ENTRIES]}),
    ],
    Meta(description="A text, a list of texts, a list of token ids, or a list of such lists."),
]


class VectorFields(msgspec.Struct, kw_only=True):
    model: ModelName = None
    truncate_prompt_tokens: (
        Annotated[
            int,
            Meta(
                ge=-1,
                description="Cuts longer texts to this number of tokens; -1: to the model's limit.",
            ),
        ]
        | None
    ) = None
    truncate: Annotated[
        bool | None,
        Meta(
            description="true cuts texts to the model's limit, as truncate_prompt_tokens -1 does; "
            "false refuses longer texts."
        ),
    ] = None
    priority: (
        Annotated[
            int,
            Meta(ge=-(2**31), lt=2**31, description="Requests with a smaller number run first."),
        ]
        | None
    ) = None
    user: Annotated[str | None, Meta(description="A hint without effect.")] = None


def read_inputs(value: str | list[object], *, field: str = "input") -> list[tuple[str, OneInput]]:
    """Returns every input with its path in the body. Raises InvalidRequest."""
    if isinstance(value, str):
        return [(field, value)]
    if not isinstance(value[0], str | list):
        return [(field, _token_ids(field, value))]
    check_num_texts(value, field=field)
    read = _text if isinstance(value[0], str) else _token_ids
    paths = [f"{field}[{position}]" for position in range(len(value))]
    return [(path, read(path, entry)) for path, entry in zip(paths, value, strict=True)]


def text_paths(texts: str | list[str], *, field: str) -> list[str]:
    """Returns the path of each text in the body."""
    return (
        [field] if isinstance(texts, str) else [f"{field}[{index}]" for index in range(len(texts))]
    )


def check_num_texts(texts: Sequence[object], *, field: str, max_texts: int = MAX_TEXTS) -> None:
    if not 1 <= len(texts) <= max_texts:
        raise InvalidRequest(f"must have 1 to {max_texts} entries, given {len(texts)}", field=field)


def _text(path: str, entry: object) -> str:
    if not isinstance(entry, str):
        first = f"{path.partition('[')[0]}[0]"
        raise InvalidRequest(
            f"must be a text, as {first} is, given {show_value(entry)}", field=path
        )
    return entry


def _token_ids(path: str, entry: object) -> list[int]:
    try:
        token_ids: list[int] = msgspec.convert(entry, Annotated[list[int], Meta(min_length=1)])
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"must be a non-empty list of token ids, given {show_value(entry)}", field=path
        ) from error
    return token_ids
