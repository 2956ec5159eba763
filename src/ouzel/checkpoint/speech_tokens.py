"""Reads the tokens that control a speech model of the Whisper family.

`generation_config.json` counts; `config.json` and the spellings of tokens in `tokenizer.json` fill
its gaps, since the files of older checkpoints have less.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.checkpoint.model_files import (
    MAX_VOCAB_SIZE,
    read_config_json,
    read_json_object,
    read_tokenizer_json,
)
from ouzel.checkpoint.speech_languages import LANGUAGE_NAMES, find_language
from ouzel.errors import ModelLoadError

_LEAST_MULTILINGUAL_VOCAB = 51865  # a token more than in models for English only
_DEFAULT_MAX_FIRST_TIMESTAMP = 50  # 1 s, as in openai-whisper's `decoding.py`
_MAX_TIMESTAMPS = 2**16

TokenId = Annotated[int, Meta(ge=0, lt=MAX_VOCAB_SIZE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechTokens:
    """Holds the control tokens of a speech model. Ids below `end` are text."""

    start: int  # <|startoftranscript|>
    end: int  # <|endoftext|>
    no_timestamps: int  # <|notimestamps|>
    first_timestamp: int  # <|0.00|>; each next token is 20 ms later
    previous: int | None  # <|startofprev|>: the text before the window follows
    no_speech: int | None  # <|nospeech|>, or <|nocaptions|> in older models
    is_multilingual: bool  # language and task are in the prompt
    # ids by code, such as `en`; the order is the order of the ids
    languages: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    tasks: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    suppressed: tuple[int, ...] = ()  # never chosen
    suppressed_first: tuple[int, ...] = ()  # not chosen as the first token
    max_first_timestamp: int = _DEFAULT_MAX_FIRST_TIMESTAMP  # steps of 20 ms
    # (layer, head) of the heads whose attention follows the words; empty: the model has none
    alignment_heads: tuple[tuple[int, int], ...] = ()

    def find_language(self, text: str) -> str | None:
        """Returns the code of a language that the model knows, by code, locale or name."""
        code = find_language(text)
        known = self.languages if self.is_multilingual else ("en",)
        return code if code in known else None

    def is_timestamp(self, token_id: int) -> bool:
        return token_id >= self.first_timestamp


class _GenerationConfig(msgspec.Struct, frozen=True):
    """Decodes the fields of speech models in `generation_config.json`, or in `config.json`."""

    decoder_start_token_id: TokenId | None = None
    eos_token_id: TokenId | list[TokenId] | None = None
    no_timestamps_token_id: TokenId | None = None
    prev_sot_token_id: TokenId | None = None
    lang_to_id: dict[str, TokenId] | None = None
    task_to_id: dict[str, TokenId] | None = None
    is_multilingual: bool | None = None
    # older files have -1 among them
    suppress_tokens: list[Annotated[int, Meta(ge=-1, lt=MAX_VOCAB_SIZE)]] | None = None
    begin_suppress_tokens: list[Annotated[int, Meta(ge=-1, lt=MAX_VOCAB_SIZE)]] | None = None
    max_initial_timestamp_index: Annotated[int, Meta(ge=0, lt=_MAX_TIMESTAMPS)] = (
        _DEFAULT_MAX_FIRST_TIMESTAMP
    )
    alignment_heads: list[tuple[TokenId, TokenId]] | None = None
    vocab_size: int | None = None


class _AddedToken(msgspec.Struct):
    id: int
    content: str = ""


class _Tokenizer(msgspec.Struct):
    added_tokens: list[_AddedToken] = []


def read_speech_tokens(directory: Path) -> SpeechTokens:
    """Reads the control tokens of a model directory.

    Raises ModelLoadError if the files do not name a token that every transcript needs.
    """
    config = _read_config(directory)
    spelled = _read_spellings(directory)
    start = _require(directory, "<|startoftranscript|>", config.decoder_start_token_id, spelled)
    end = _require(directory, "<|endoftext|>", _read_end(config), spelled)
    no_timestamps = _require(directory, "<|notimestamps|>", config.no_timestamps_token_id, spelled)
    previous = _find(config.prev_sot_token_id, "<|startofprev|>", spelled)
    no_speech = spelled.get("<|nospeech|>", spelled.get("<|nocaptions|>"))
    languages, tasks = _read_languages(config, spelled), _read_tasks(config, spelled)
    is_multilingual = _is_multilingual(config)
    if is_multilingual and not (languages and tasks):
        raise ModelLoadError(
            f"{directory}: generation_config.json or tokenizer.json must name the tokens of "
            "languages and tasks"
        )
    control = (start, previous, no_speech, spelled.get("<|startoflm|>"), *tasks.values())
    return SpeechTokens(
        start=start,
        end=end,
        no_timestamps=no_timestamps,
        first_timestamp=spelled.get("<|0.00|>", no_timestamps + 1),
        previous=previous,
        no_speech=no_speech,
        is_multilingual=is_multilingual,
        languages=MappingProxyType(languages if is_multilingual else {}),
        tasks=MappingProxyType(tasks if is_multilingual else {}),
        suppressed=_sort_ids((*(config.suppress_tokens or ()), *control)),
        suppressed_first=_sort_ids(config.begin_suppress_tokens or ()),
        max_first_timestamp=config.max_initial_timestamp_index,
        alignment_heads=tuple(config.alignment_heads or ()),
    )


def _read_config(directory: Path) -> _GenerationConfig:
    """Reads the fields of `generation_config.json`; `config.json` fills its gaps."""
    path = directory / "generation_config.json"
    values = {name: value for name, value in read_json_object(path).items() if value is not None}
    try:
        return msgspec.convert({**read_config_json(directory), **values}, _GenerationConfig)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ModelLoadError(f"{path}: {error}") from error


def _read_spellings(directory: Path) -> dict[str, int]:
    path = directory / "tokenizer.json"
    if not path.is_file():
        return {}
    content = msgspec.json.decode(read_tokenizer_json(path), type=_Tokenizer)
    return {token.content: token.id for token in content.added_tokens}


def _find(declared: int | None, spelling: str, spelled: Mapping[str, int]) -> int | None:
    return spelled.get(spelling) if declared is None else declared


def _require(
    directory: Path, spelling: str, declared: int | None, spelled: Mapping[str, int]
) -> int:
    token_id = _find(declared, spelling, spelled)
    if token_id is None:
        raise ModelLoadError(
            f"{directory}: generation_config.json or tokenizer.json must name the token {spelling}"
        )
    return token_id


def _read_end(config: _GenerationConfig) -> int | None:
    declared = config.eos_token_id
    return next(iter(declared), None) if isinstance(declared, list) else declared


def _read_tasks(config: _GenerationConfig, spelled: Mapping[str, int]) -> dict[str, int]:
    return config.task_to_id or {
        task: spelled[f"<|{task}|>"]
        for task in ("transcribe", "translate")
        if f"<|{task}|>" in spelled
    }


def _is_multilingual(config: _GenerationConfig) -> bool:
    if config.is_multilingual is not None:
        return config.is_multilingual
    return bool(config.lang_to_id) or (config.vocab_size or 0) >= _LEAST_MULTILINGUAL_VOCAB


def _read_languages(config: _GenerationConfig, spelled: Mapping[str, int]) -> dict[str, int]:
    found = config.lang_to_id or {
        f"<|{code}|>": spelled[f"<|{code}|>"] for code in LANGUAGE_NAMES if f"<|{code}|>" in spelled
    }
    by_id = sorted(found.items(), key=lambda item: item[1])
    return {
        spelling.removeprefix("<|").removesuffix("|>"): token_id for spelling, token_id in by_id
    }


def _sort_ids(token_ids: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({each for each in token_ids if each is not None and each >= 0}))
