"""Reads the small JSON and Jinja files of a model directory into frozen records.

A missing file is an empty record; a broken file raises a ModelLoadError that names it. If two files
say the same thing, the docstring of the reader tells which file counts. The files come from
strangers: their sizes and their token ids are limited to several times the values of published
models, so that reading them takes seconds and less than 2 GB.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.checkpoint.default_templates import DEFAULT_TEMPLATES
from ouzel.checkpoint.thinkers import promote_thinker
from ouzel.errors import ModelLoadError

JsonObject = dict[str, object]

CONFIG_FILE = "config.json"
MAX_JSON_BYTES = 16 * 2**20
MAX_TEMPLATE_BYTES = 2**20
MAX_TOKENIZER_BYTES = 128 * 2**20
MAX_VOCAB_SIZE = 2**22
MAX_UNUSED_IDS = 2**16  # token ids may exceed twice the number of tokens by so many

StopString = Annotated[str, Meta(min_length=1)]


class SamplingDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling values that the model's makers recommend; None where they name none."""

    do_sample: bool | None = None
    temperature: Annotated[float, Meta(ge=0.0)] | None = None
    top_p: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None  # 0: the most likely token
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    typical_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    no_repeat_ngram_size: Annotated[int, Meta(ge=0)] | None = None
    repetition_penalty: Annotated[float, Meta(gt=0.0)] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_new_tokens: Annotated[int, Meta(ge=1)] | None = None
    stop_strings: StopString | list[StopString] | None = None
    # transformers' own default is 20.0, a float
    num_assistant_tokens: Annotated[float, Meta(ge=0.0)] | None = None
    assistant_confidence_threshold: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None


class GenerationConfig(SamplingDefaults, frozen=True, kw_only=True):
    """The fields of `generation_config.json` that Ouzel uses."""

    eos_token_id: int | list[int] | None = None


@dataclass(frozen=True, slots=True)
class TemplateTexts:
    """The chat templates of a directory by name.

    The names `default`, `tool_use` and `rag` have a meaning.
    """

    by_name: Mapping[str, str]
    source: Path  # the file or directory that messages name


def sampling_defaults(directory: Path) -> SamplingDefaults:
    config = read_generation_config(directory)
    return SamplingDefaults(
        **{name: getattr(config, name) for name in SamplingDefaults.__struct_fields__}
    )


def read_generation_config(directory: Path) -> GenerationConfig:
    path = directory / "generation_config.json"
    try:
        config = msgspec.convert(read_json_object(path), GenerationConfig)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ModelLoadError(f"{path}: {error}") from error
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ModelLoadError(f"{path}: {name} must be a number, found {value}")
    return config


def read_generation_values(directory: Path, keys: Collection[str]) -> JsonObject:
    """Returns these keys of `generation_config.json`, as far as the file has them."""
    if not keys:
        return {}
    values = read_json_object(directory / "generation_config.json")
    return {key: values[key] for key in keys if key in values}


def read_special_tokens(directory: Path) -> dict[str, str]:
    """Returns every `…_token` and named extra token.

    `tokenizer_config.json` beats `special_tokens_map.json`.
    """
    special_tokens: dict[str, str] = {}
    for file_name in ("special_tokens_map.json", "tokenizer_config.json"):
        entries = read_json_object(directory / file_name)
        named = {name: entry for name, entry in entries.items() if name.endswith("_token")}
        extra = entries.get("extra_special_tokens")
        for name, entry in {**(extra if isinstance(extra, dict) else {}), **named}.items():
            content = entry.get("content") if isinstance(entry, dict) else entry
            if isinstance(content, str):
                special_tokens[name] = content
    return special_tokens


def read_response_template(directory: Path) -> object:
    """Returns the `response_template` of `tokenizer_config.json`, or None without one."""
    return read_json_object(directory / "tokenizer_config.json").get("response_template")


def read_model_eos_token_ids(directory: Path) -> tuple[int, ...]:
    """Returns the end tokens of `generation_config.json`, or else of `config.json`."""
    path = directory / "generation_config.json"
    declared: object = read_generation_config(directory).eos_token_id
    if declared is None:
        path = directory / CONFIG_FILE
        declared = read_config_json(directory).get("eos_token_id")
    candidates = declared if isinstance(declared, list) else [declared]
    token_ids = tuple(token_id for token_id in candidates if isinstance(token_id, int))
    for token_id in token_ids:
        if not 0 <= token_id < MAX_VOCAB_SIZE:
            raise ModelLoadError(
                f"{path}: eos_token_id must be >= 0 and < {MAX_VOCAB_SIZE}, found {brief(token_id)}"
            )
    return token_ids


def read_chat_templates(directory: Path, override_path: str = "") -> TemplateTexts | None:
    """Reads the chat templates of the first source that has any, or returns None.

    The sources are the override, the `.jinja` files, `tokenizer_config.json`,
    `chat_template.json` and our templates of families that have none, in this order.
    """
    if override_path:
        return TemplateTexts({"default": _read_text(Path(override_path))}, Path(override_path))
    for read in (_templates_in_jinja_files, _templates_in_json_files, _template_of_family):
        texts = read(directory)
        if texts is not None:
            return texts
    return None


# Transformers wrote these types at first.
_OLDER_TYPES = {"lfm2-vl": "lfm2_vl"}


def read_config_json(directory: Path) -> JsonObject:
    """Reads `config.json`; `hf_config.py` checks the types and limits of its values.

    Returns an empty object if there is no such file. Raises ModelLoadError if it is broken.
    """
    values = read_json_object(directory / CONFIG_FILE)
    model_type = values.get("model_type")
    if isinstance(model_type, str) and model_type in _OLDER_TYPES:
        values["model_type"] = _OLDER_TYPES[model_type]
    return promote_thinker(values)


def read_json_object(path: Path) -> JsonObject:
    """Reads a JSON object; returns an empty one if there is no such file."""
    if not path.is_file():
        return {}
    text = _read_text(path, MAX_JSON_BYTES)
    try:
        value = json.loads(text)
    except RecursionError:
        raise ModelLoadError(f"{path} is not valid JSON: it is nested too deep") from None
    except ValueError as error:  # Python also refuses an integer with too many digits
        raise ModelLoadError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelLoadError(f"{path} must hold a JSON object")
    return value


def _templates_in_jinja_files(directory: Path) -> TemplateTexts | None:
    by_name: dict[str, str] = {}
    for folder in ("chat_templates", "additional_chat_templates"):
        by_name |= {
            path.stem: _read_text(path) for path in sorted((directory / folder).glob("*.jinja"))
        }
    main = directory / "chat_template.jinja"
    if main.is_file():
        by_name["default"] = _read_text(main)
    return TemplateTexts(by_name, main if main.is_file() else directory) if by_name else None


def _templates_in_json_files(directory: Path) -> TemplateTexts | None:
    for file_name in ("tokenizer_config.json", "chat_template.json"):
        path = directory / file_name
        declared = read_json_object(path).get("chat_template")
        if declared is not None:
            return TemplateTexts(_named_templates(declared, path), path)
    return None


def _template_of_family(directory: Path) -> TemplateTexts | None:
    model_type = read_config_json(directory).get("model_type")
    template = DEFAULT_TEMPLATES.get(model_type) if isinstance(model_type, str) else None
    return None if template is None else TemplateTexts({"default": template}, directory)


def _named_templates(declared: object, path: Path) -> dict[str, str]:
    """Reads one template, or a list of `{"name": …, "template": …}`."""
    if isinstance(declared, str):
        return {"default": declared}
    try:
        entries = msgspec.convert(declared, list[dict[str, str]])
        by_name = {entry["name"]: entry["template"] for entry in entries}
    except (msgspec.ValidationError, KeyError) as error:
        raise ModelLoadError(
            f"{path}: chat_template must be a text or a list of names and templates"
        ) from error
    if not by_name:
        raise ModelLoadError(f"{path}: chat_template is an empty list")
    return by_name


class _AddedToken(msgspec.Struct):
    id: int
    content: str = ""


class _AddedTokens(msgspec.Struct):
    """Decodes the added tokens of `tokenizer.json`, and skips the rest of the file."""

    added_tokens: list[_AddedToken] = []


class _TokenIds(_AddedTokens):
    """Decodes all token ids of `tokenizer.json`."""

    model: "_Vocabulary | None" = None


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int] | list[msgspec.Raw] = {}  # the index in a list is the id


def read_tokenizer_json(path: Path) -> str:
    """Returns the text of `tokenizer.json`, after it has checked that no token id is too large."""
    text = _read_text(path, MAX_TOKENIZER_BYTES)
    try:
        content = msgspec.json.decode(text, type=_TokenIds)
    except RecursionError:
        raise ModelLoadError(f"{path} cannot be read: it is nested too deep") from None
    except msgspec.DecodeError as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error
    vocabulary = {} if content.model is None else content.model.vocab
    ids = [
        *(vocabulary.values() if isinstance(vocabulary, dict) else ()),
        *(token.id for token in content.added_tokens),
    ]
    limit = min(MAX_VOCAB_SIZE, 2 * (len(vocabulary) + len(content.added_tokens)) + MAX_UNUSED_IDS)
    if unlike := [token_id for token_id in ids if not 0 <= token_id < limit]:
        number = len(vocabulary) + len(content.added_tokens)
        raise ModelLoadError(
            f"{path}: the ids of its {number} tokens must be >= 0 and < {limit}, "
            f"found {brief(unlike[0])}"
        )
    return text


def read_added_tokens(directory: Path) -> frozenset[str]:
    """Returns the spellings of the tokens that `tokenizer.json` adds to its vocabulary.

    Returns none for a missing or broken file: the reader of the whole tokenizer reports it.
    """
    try:
        text = _read_text(directory / "tokenizer.json", MAX_TOKENIZER_BYTES)
        content = msgspec.json.decode(text, type=_AddedTokens)
    except (ModelLoadError, RecursionError, msgspec.DecodeError):
        return frozenset()
    return frozenset(token.content for token in content.added_tokens)


def brief(value: object) -> str:
    """Returns a JSON value as text for a message, cut after 80 characters."""
    try:
        text = json.dumps(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}…"


def _read_text(path: Path, max_bytes: int = MAX_TEMPLATE_BYTES) -> str:
    try:
        if (size := path.stat().st_size) > max_bytes:
            raise ModelLoadError(f"{path} must have <= {max_bytes} bytes, it has {size}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelLoadError(f"cannot read {path}: {error}") from error
