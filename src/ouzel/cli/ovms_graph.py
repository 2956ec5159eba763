"""`graph.pbtxt`, by which OpenVINO Model Server describes a language model, as options of ours."""

import os.path
from collections.abc import Callable
from pathlib import Path

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.ovms_meanings import Settings, take_setting
from ouzel.cli.suggestion import did_you_mean
from ouzel.cli.text_proto import Message, Scalar, TextProtoError, read_text_proto

GRAPH_FILE = "graph.pbtxt"
_CALCULATORS = frozenset({"HttpLLMCalculator", "LLMCalculator"})  # the second is of 2024
_OPTIONS = "mediapipe.LLMCalculatorOptions"
_MAX_BYTES = 2**20

_BOOLEANS = {"true": "true", "True": "true", "t": "true", "1": "true"} | {
    "false": "false",
    "False": "false",
    "f": "false",
    "0": "false",
}
_EVICTION = "leave it out: no token of a sequence is forgotten; --kv-cache-dtype u8 and --max-model-len bound the cache"

# Fields that have the meaning of a flag are by that flag's name.
_FLAG_OF = {"device": "target_device", "plugin_config": "plugin_config"} | {
    name: name
    for name in (
        *("max_num_seqs", "max_num_batched_tokens", "cache_size", "enable_prefix_caching", "dynamic_split_fuse"),
        *("tool_parser", "reasoning_parser", "enable_tool_guided_generation", "pipeline_type"),
        "cache_interval_multiplier",
    )
}
_PATHS = {"models_path": "model", "draft_models_path": "draft_model"}  # relative to the graph
_VALUES = {"max_tokens_limit": "max_tokens_limit", "response_parser": "tool_parser"}  # the second is of 2025
_WITHOUT_MEANING = (
    *("chat_template_mode", "block_size", "draft_device", "draft_block_size", "draft_cache_size"),
    *("draft_max_num_seqs", "draft_max_num_batched_tokens", "draft_dynamic_split_fuse"),
)
_REFUSED = {
    "cache_eviction_config": _EVICTION,
    "sparse_attention_config": "leave it out: attention is to all tokens",
}
FIELDS = (
    *_FLAG_OF,
    *_PATHS,
    *_VALUES,
    *_WITHOUT_MEANING,
    *_REFUSED,
    *("best_of_limit", "draft_eagle3_mode"),
)
_NUMBERS = frozenset(
    {
        *("max_num_seqs", "max_num_batched_tokens", "cache_size", "cache_interval_multiplier", "max_tokens_limit"),
        *("best_of_limit", "block_size", "draft_block_size", "draft_cache_size", "draft_max_num_seqs"),
        "draft_max_num_batched_tokens",
    }
)
_SWITCHES = frozenset(
    {
        *("enable_prefix_caching", "dynamic_split_fuse", "enable_tool_guided_generation"),
        *("draft_dynamic_split_fuse", "draft_eagle3_mode"),
    }
)
_ENUMS = frozenset({"pipeline_type", "chat_template_mode"})


class NotALanguageModel(Exception):
    """Says what it is instead."""


def read_graph(path: Path) -> Settings:
    """Returns the options of the model, among them `model`. Raises InvalidOption and NotALanguageModel."""
    try:
        if not path.is_file() and path.exists():
            raise InvalidOption("must be an ordinary file")
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidOption(f"must be at most {_MAX_BYTES} bytes long")
        graph = read_text_proto(path.read_text(encoding="utf-8"))
        return _settings(_options(graph), path.parent)
    except OSError as error:
        raise InvalidOption(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, TextProtoError, InvalidOption) as error:
        raise InvalidOption(f"{path}: {error}") from error


def _options(graph: Message) -> Message:
    nodes = graph.messages("node")
    calculators = [text for node in nodes for text in node.texts("calculator")]
    found = [node for node in nodes if _CALCULATORS.intersection(node.texts("calculator"))]
    if not found:
        raise NotALanguageModel(f"its graph has {', '.join(calculators) or 'no node'}")
    if len(found) > 1:
        raise InvalidOption(f"node: must be one of a language model, given {len(found)}")
    places = [*found[0].messages("node_options"), *found[0].messages("options")]
    named = [
        value
        for place in places
        for name, value in place.fields
        if name.rpartition("/")[2].removesuffix(".ext") == _OPTIONS and isinstance(value, Message)
    ]
    if len(named) != 1:
        raise InvalidOption(f"node_options: must hold {_OPTIONS} once, given {len(named)} of it")
    return named[0]


def _settings(options: Message, directory: Path) -> Settings:
    names = [name for name, _ in options.fields]
    settings = Settings()
    for name, value in options.fields:
        if name not in FIELDS:
            raise InvalidOption(f"{_OPTIONS} has no field {name}{did_you_mean([name], FIELDS)}")
        if names.count(name) > 1:
            raise InvalidOption(f"{name}: must stand once, given {names.count(name)} times")
        if name in _REFUSED:
            raise InvalidOption(f"{name}: {_REFUSED[name]}")
        _take(settings, name, _checked(name, value), directory)
    if "model" not in settings.values:
        raise InvalidOption("models_path: must be there")
    return settings


def _take(settings: Settings, name: str, text: str, directory: Path) -> None:
    if name in _FLAG_OF:
        take_setting(settings, _FLAG_OF[name], text)
    elif name in _PATHS:
        settings.values[_PATHS[name]] = os.path.abspath(directory / text)
    elif name in _VALUES:
        settings.values[_VALUES[name]] = text
    elif name == "best_of_limit":
        settings.values["max_choices"] = _max_choices(text)
    elif name == "draft_eagle3_mode":
        if text == "true":
            raise InvalidOption(f"{name}: a draft is a smaller model; name one by draft_models_path, given 'true'")
    else:
        settings.without_meaning.append(name)


def _max_choices(text: str) -> int:
    limit = int(text)
    if limit < 2:
        raise InvalidOption(f"best_of_limit: must be >= 2, as it is itself excluded, given {limit}")
    return min(limit - 1, 128)


def _checked(name: str, value: Scalar | Message) -> str:
    """Returns the text of a value of the field's type."""
    wanted, read = _type_of(name)
    text = None if isinstance(value, Message) else read(value)
    if text is None:
        given = "a message" if isinstance(value, Message) else repr(value.text[:200])
        raise InvalidOption(f"{name}: must be {wanted}, given {given}")
    return text


def _type_of(name: str) -> tuple[str, Callable[[Scalar], str | None]]:
    if name in _NUMBERS:
        return "a whole number", _number
    if name in _SWITCHES:
        return "true or false", lambda value: None if value.is_string else _BOOLEANS.get(value.text)
    if name in _ENUMS:
        return "a name without quotation marks", lambda value: None if value.is_string else value.text
    return "a text in quotation marks", _string


def _number(value: Scalar) -> str | None:
    try:
        return None if value.is_string or int(value.text, 0) < 0 else str(int(value.text, 0))
    except ValueError:
        return None


def _string(value: Scalar) -> str | None:
    return value.text if value.is_string else None
