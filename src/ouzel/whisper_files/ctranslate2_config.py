"""Reads the small files beside CTranslate2's model.bin."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.checkpoint.model_files import read_json_object
from ouzel.errors import ModelLoadError

_Index = Annotated[int, Meta(ge=0)]
_Ids = Annotated[tuple[_Index, ...], Meta(max_length=2**16)]


class CTranslate2Config(msgspec.Struct, frozen=True):
    """The fields of CTranslate2's config.json that Ouzel uses."""

    suppress_ids: _Ids = ()
    suppress_ids_begin: _Ids = ()
    alignment_heads: tuple[tuple[_Index, _Index], ...] | None = None  # layers with heads


class _AddedToken(msgspec.Struct, frozen=True):
    content: str
    id: _Index


class _Tokenizer(msgspec.Struct, frozen=True):
    added_tokens: tuple[_AddedToken, ...] = ()


def read_ctranslate2_config(path: Path) -> CTranslate2Config:
    """Reads config.json; without one, no tokens are suppressed. Raises ModelLoadError."""
    try:
        return msgspec.convert(read_json_object(path), CTranslate2Config)
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{path}: {error}") from error


def read_added_tokens(path: Path) -> dict[str, int]:
    """Returns the ids of the added tokens of tokenizer.json. Raises ModelLoadError."""
    try:
        read = msgspec.convert(read_json_object(path), _Tokenizer)
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{path}: {error}") from error
    return {each.content: each.id for each in read.added_tokens}
