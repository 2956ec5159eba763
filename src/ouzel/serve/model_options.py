"""Options about the model are judged by its small files, so that a wrong one is refused before the engine starts.

What has its default is not looked at: there is nothing to refuse, and a start that needs no check imports nothing for
it. What is wrong with the model's own files is for the engine to say.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig
from ouzel.config.adapters import read_adapters
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import IR_FILES
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import flag_of

if TYPE_CHECKING:
    from ouzel.parsers.registry import OutputFormat

_AUTO, _RESPONSE_TEMPLATE = "auto", "response_template"
_PARSERS = ("tool_parser", "reasoning_parser")
_LEAST_ELEMENT_BYTES: dict[KvCacheDtype, int] = {"auto": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4}

# Families all of whose layers cache keys and values of every head. Of others the engine says what the cache holds.
_WITH_EQUAL_LAYERS = frozenset({"llama", "mistral", "qwen2", "qwen3", "smollm3"})


class _Rope(msgspec.Struct):
    rope_type: str | None = None
    type: str | None = None  # the older name
    factor: float | None = None
    original_max_position_embeddings: int | None = None


class _Dimensions(msgspec.Struct):
    """Holds what of config.json bounds the context."""

    model_type: str | None = None
    max_position_embeddings: int | None = None
    original_max_position_embeddings: int | None = None
    rope_parameters: _Rope | None = None
    rope_scaling: _Rope | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    hidden_size: int | None = None
    head_dim: int | None = None

    def max_positions(self, *, is_ir: bool) -> int | None:
        """Returns how far the model can go, as the backend's `read_rope` finds it; None where the file is silent."""
        positions = self.max_position_embeddings
        scaling = self.rope_parameters or self.rope_scaling or _Rope()
        if positions is None or is_ir or (scaling.rope_type or scaling.type) != "yarn":
            return positions
        original = (
            self.original_max_position_embeddings
            or scaling.original_max_position_embeddings
            or positions
        )
        return max(positions, int(original * (scaling.factor or positions / original)))

    def kv_bytes_per_token(self, element_bytes: int) -> int | None:
        """Returns the least that keys and values of one token take: the scales of u8 come on top.

        None where layers may be of several kinds.
        """
        heads = self.num_key_value_heads or self.num_attention_heads
        head_dim = self.head_dim
        if head_dim is None and self.hidden_size and self.num_attention_heads:
            head_dim = min(
                self.hidden_size // self.num_attention_heads, 128
            )  # 128: Qwen3's, where it is not written
        if self.model_type not in _WITH_EQUAL_LAYERS or not (
            self.num_hidden_layers and heads and head_dim
        ):
            return None
        return 2 * self.num_hidden_layers * heads * head_dim * element_bytes


def check_without_model(model: ModelConfig) -> None:
    """Judges names and files that are no part of the model, which may still have to be downloaded.

    Raises InvalidOption.
    """
    if model.recompress and not model.weight_plan.integer_widths:
        raise InvalidOption(
            f"--recompress: needs int8 or int4 in --weights, given --weights {model.weights}"
        )
    if model.chat_template:
        _check_template(Path(model.chat_template))
    if model.lora:
        _check_adapters(read_adapters(model.lora), model.max_loras)
    for name in _PARSERS:
        value = getattr(model, name)
        if value not in (_AUTO, _RESPONSE_TEMPLATE):
            from ouzel.parsers.registry import choose_output_format  # noqa: PLC0415  see above

            try:
                choose_output_format("", **{name: value})
            except ModelLoadError as error:
                raise InvalidOption(f"{flag_of(name)} {value}: {error}") from error


def check_with_model(model: ModelConfig, engine: EngineConfig, directory: Path) -> None:
    """Judges what depends on the model's files. Raises InvalidOption."""
    described = [name for name in _PARSERS if getattr(model, name) == _RESPONSE_TEMPLATE]
    if described:
        try:
            output_format(directory, model)
        except ModelLoadError as error:
            flags = ", ".join(f"{flag_of(name)} {_RESPONSE_TEMPLATE}" for name in described)
            raise InvalidOption(f"{flags}: {error}") from error
    if model.weights != _AUTO and _is_ir(directory):
        raise InvalidOption(
            f"--weights: must be auto, as an OpenVINO IR is served as it is, given {model.weights!r}"
        )
    if model.max_model_len is not None:
        _check_context(model.max_model_len, engine, directory)


@cache
def output_format(directory: Path, model: ModelConfig) -> "OutputFormat":
    """Chooses how the model's output is read, once: the choice is logged. Raises ModelLoadError."""
    from ouzel.checkpoint.model_files import read_chat_templates, read_response_template  # noqa: PLC0415
    from ouzel.parsers.registry import choose_output_format  # noqa: PLC0415  see above

    templates = read_chat_templates(directory, model.chat_template)
    return choose_output_format(
        "\n".join(templates.by_name.values()) if templates else "",
        lambda: _texts_beside_the_template(directory, model.chat_template),
        tool_parser=model.tool_parser,
        reasoning_parser=model.reasoning_parser,
        response_template=read_response_template(directory),
    )


def _texts_beside_the_template(directory: Path, chat_template: str) -> str:
    """Returns the added tokens of the tokenizer, and small chats as the chat template renders them.

    Raises ModelLoadError for a chat template that cannot be used.
    """
    from ouzel.checkpoint.model_files import read_added_tokens  # noqa: PLC0415
    from ouzel.prompts.chat_template import ChatTemplate  # noqa: PLC0415  see above
    from ouzel.prompts.template_trials.switched_chats import render_switched_chats  # noqa: PLC0415

    template = ChatTemplate.load(directory, chat_template)
    chats = "" if template is None else render_switched_chats(template)
    return "\n".join([*sorted(read_added_tokens(directory)), chats])


def _check_adapters(paths: Mapping[str, str], max_loras: int | None) -> None:
    """What the files hold, the engine says."""
    for name, path in paths.items():
        if not (Path(path) / "adapter_config.json").is_file():
            raise InvalidOption(
                f"--lora {name}={path}: is no adapter of PEFT's, it has no adapter_config.json"
            )
    if max_loras is not None and max_loras < len(paths):
        raise InvalidOption(
            f"--max-loras: must be >= {len(paths)}, as many as --lora names, given {max_loras}"
        )


def _check_template(path: Path) -> None:
    import jinja2  # noqa: PLC0415  see above

    from ouzel.prompts.template_environment import compile_template  # noqa: PLC0415

    try:
        compile_template(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidOption(f"--chat-template {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidOption(f"--chat-template {path}: is not UTF-8 text") from error
    except jinja2.TemplateSyntaxError as error:
        raise InvalidOption(
            f"--chat-template {path}: line {error.lineno}: {error.message}"
        ) from error


def _is_ir(directory: Path) -> bool:
    return any((directory / name).is_file() for name in IR_FILES)


def _check_context(max_model_len: int, engine: EngineConfig, directory: Path) -> None:
    try:
        dimensions = msgspec.json.decode((directory / "config.json").read_bytes(), type=_Dimensions)
    except (OSError, msgspec.DecodeError):
        return  # the engine says what is wrong with it
    limit = dimensions.max_positions(is_ir=_is_ir(directory))
    if limit is not None and max_model_len > limit:
        raise InvalidOption(
            f"--max-model-len: must be <= {limit}, the model's own limit, given {max_model_len}"
        )
    token_bytes = dimensions.kv_bytes_per_token(_LEAST_ELEMENT_BYTES[engine.kv_cache_dtype])
    if (
        engine.kv_cache_gib is None or token_bytes is None or _is_ir(directory)
    ):  # an IR may be of any architecture
        return
    num_tokens = int(engine.kv_cache_gib * 2**30) // token_bytes
    if max_model_len > num_tokens:
        raise InvalidOption(
            f"--max-model-len: must be <= {num_tokens}, which is the most that --kv-cache-gib {engine.kv_cache_gib:g} "
            f"holds, given {max_model_len}"
        )
