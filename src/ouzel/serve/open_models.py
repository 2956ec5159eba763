"""Finds the models of the options, downloads missing ones and checks them.

This is the only place that accepts a model: a `CheckedModel` is made here alone, and engines start
with nothing else. The checks read only the small files of a model, so a wrong option is refused
before an engine starts. Three rules:

1. An option that has its default is not checked, and a start without checks imports no checker.
2. Names and files that do not belong to the model are checked before a download.
3. Faults in the model's own files are left to the engine, which describes them better.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ouzel.checkpoint.draft_head import refuse_ir_of_draft_head
from ouzel.checkpoint.lone_drafts import refuse_lone_draft, refuse_lone_ir_of_head
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig, VllmConfig
from ouzel.config.adapters import read_adapters
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import LocalModel, find_or_download, is_ir
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import ModelSettings, check_names
from ouzel.options.options import Options
from ouzel.options.profiles.drafts import explain_left_out
from ouzel.options.records import format_flag

logger = logging.getLogger(__name__)

_AUTO, _RESPONSE_TEMPLATE = "auto", "response_template"
_PARSERS = ("tool_parser", "reasoning_parser")
_LEAST_VALUE_BYTES: dict[KvCacheDtype, int] = {"auto": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4}


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model on this disk whose files fit its options."""

    settings: ModelSettings
    local: LocalModel

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the model for clients."""
        return self.settings.model.served_model_name or (self.local.name,)


def open_models(options: Options) -> list[CheckedModel]:
    """Finds, downloads and checks all models of a server; a download may take minutes.

    Raises InvalidOption and ModelLoadError.
    """
    for settings in options.all_models:
        _check_before_download(settings.model)
    models = [_accept(settings) for settings in options.all_models]
    if len(models) > 1:
        check_names([name for model in models for name in dict.fromkeys(model.names)])
    return models


def open_model(settings: ModelSettings, *, may_be_draft: bool = False) -> CheckedModel:
    """Finds, downloads and checks one model. Raises InvalidOption and ModelLoadError.

    With `may_be_draft` it may be an EAGLE-3 head or an assistant, which cannot be served alone.
    """
    _check_before_download(settings.model)
    return _accept(settings, may_be_draft=may_be_draft)


def _accept(settings: ModelSettings, *, may_be_draft: bool = False) -> CheckedModel:
    local = find_or_download(settings.model)
    if settings.leaves_out_ir_draft and local.draft is not None and is_ir(local.draft):
        logger.warning("--draft_eagle3_mode: %s", explain_left_out(settings.model.draft_model))
        model = msgspec.structs.replace(settings.model, draft_model="")
        settings, local = replace(settings, model=model), replace(local, draft=None)
    if may_be_draft:
        refuse_lone_ir_of_head(local.directory)
    else:
        refuse_lone_draft(local.directory)
    if local.draft is not None:
        refuse_ir_of_draft_head(local.draft)
    _check_files(settings, local.directory)
    _warn_of_adapter(settings, local.directory)
    return CheckedModel(settings, local)


def _warn_of_adapter(settings: ModelSettings, directory: Path) -> None:
    """Logs that an adapter beside the weights, as some repositories have it, is not applied."""
    path = directory / ADAPTER_CONFIG
    if settings.vllm.is_chosen or not path.is_file():
        return
    named = read_adapters(settings.model.lora).values() if settings.model.lora else ()
    if directory.resolve() not in (Path(each).resolve() for each in named):
        logger.warning(
            "%s describes an adapter that is not applied; --lora NAME=%s loads it for requests "
            "whose model is NAME",
            path,
            directory,
        )


def _check_before_download(model: ModelConfig) -> None:
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
            _check_parser(name, value)


def _check_files(settings: ModelSettings, directory: Path) -> None:
    """Checks the options that depend on the files of the model."""
    model = settings.model
    described = [name for name in _PARSERS if getattr(model, name) == _RESPONSE_TEMPLATE]
    if described:
        _check_response_template(described, model, directory)
    if model.weights != _AUTO and is_ir(directory):
        raise InvalidOption(
            "--weights: must be auto, as an OpenVINO IR is served as it is, "
            f"given {model.weights!r}"
        )
    if model.max_model_len is not None:
        _check_context(model.max_model_len, settings.engine, directory)
    if settings.vllm.is_chosen:
        _check_for_vllm(settings.vllm, directory)


def _check_template(path: Path) -> None:
    import jinja2  # noqa: PLC0415  rule 1

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


def _check_adapters(paths: Mapping[str, str], max_loras: int | None) -> None:
    """Checks that the directories are PEFT adapters and that `max_loras` allows all of them.

    The engine checks the tensors later.
    """
    for name, path in paths.items():
        if not (Path(path) / ADAPTER_CONFIG).is_file():
            raise InvalidOption(
                f"--lora {name}={path}: must be a PEFT adapter, it has no {ADAPTER_CONFIG}"
            )
    if max_loras is not None and max_loras < len(paths):
        raise InvalidOption(
            f"--max-loras: must be >= {len(paths)}, the number of adapters in --lora, "
            f"given {max_loras}"
        )


def _check_parser(name: str, value: str) -> None:
    from ouzel.parsers.registry import choose_output_format  # noqa: PLC0415  rule 1

    try:
        choose_output_format("", **{name: value})
    except ModelLoadError as error:
        raise InvalidOption(f"{format_flag(name)} {value}: {error}") from error


def _check_response_template(names: list[str], model: ModelConfig, directory: Path) -> None:
    from ouzel.serve.output_format import read_output_format  # noqa: PLC0415  rule 1

    try:
        read_output_format(directory, model)
    except ModelLoadError as error:
        flags = ", ".join(f"{format_flag(name)} {_RESPONSE_TEMPLATE}" for name in names)
        raise InvalidOption(f"{flags}: {error}") from error


def _check_context(max_model_len: int, engine: EngineConfig, directory: Path) -> None:
    from ouzel.checkpoint.context_length import (  # noqa: PLC0415  rule 1
        read_cached_values,
        read_max_positions,
    )
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415

    try:
        config = read_hf_config(directory)
        if is_ir(directory):
            # The graph of an IR is as it was exported, and may have any architecture.
            limit, num_values = config.size("max_position_embeddings"), None
        else:
            limit, num_values = read_max_positions(config), read_cached_values(config)
    except ModelLoadError:
        return  # rule 3
    if max_model_len > limit:
        raise InvalidOption(
            f"--max-model-len: must be <= {limit}, the model's own limit, given {max_model_len}"
        )
    if engine.kv_cache_gib is None or num_values is None:
        return
    least_token_bytes = num_values * _LEAST_VALUE_BYTES[engine.kv_cache_dtype]
    num_tokens = int(engine.kv_cache_gib * 2**30) // least_token_bytes
    if max_model_len > num_tokens:
        raise InvalidOption(
            f"--max-model-len: must be <= {num_tokens}, the capacity of --kv-cache-gib "
            f"{engine.kv_cache_gib:g}, given {max_model_len}"
        )


def _check_for_vllm(vllm: VllmConfig, directory: Path) -> None:
    """Raises InvalidOption for a model that vLLM cannot serve: IR, local GGUF, or vectors."""
    if is_ir(directory):
        raise InvalidOption(f"--engine vllm: cannot serve an OpenVINO IR, given {directory}")
    if not vllm.engine_url and next(directory.glob("*.gguf"), None) is not None:
        raise InvalidOption(
            f"--engine vllm: needs a model of safetensors, given GGUF in {directory}"
        )
    if _makes_vectors(directory):
        raise InvalidOption(
            f"--engine vllm: needs a model that generates, {directory} makes vectors or scores"
        )


def _makes_vectors(directory: Path) -> bool:
    from ouzel.checkpoint.model_files import read_config_json  # noqa: PLC0415  rule 1

    architectures = read_config_json(directory).get("architectures")
    if isinstance(architectures, list):
        for name in architectures:
            if str(name).endswith("ForSequenceClassification"):
                return True
    return (directory / "modules.json").is_file()
