"""With `--profile ovms`, OVMS's command line is read as ours. Each option of ours beats what it says.

A flag that has no meaning here is named in the log; one that would change which model answers, and how, is refused.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import get_args

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.one_line_parser import OneLineParser
from ouzel.config.model import TaskOption

Values = dict[str, object]
Meaning = Callable[[str], Values]


def _same(option: str) -> Meaning:
    return lambda value: {option: value}


def _list(option: str) -> Meaning:
    return lambda value: {option: [part.strip() for part in value.split(",")]}


def _gibibytes(value: str) -> Values:
    return {} if value == "0" else {"kv_cache_gib": value}  # 0: as much as it needs


def _log_level(value: str) -> Values:
    return {"log_level": "debug" if value == "TRACE" else value.lower()}


def _weights(value: str) -> Values:
    return {"weights": {"fp16": "bf16", "fp32": "f32"}.get(value, value)}


def _task(value: str) -> Values:
    """Raises InvalidOption for what is done with pictures and sounds."""
    if value not in _TASKS:
        raise InvalidOption(f"--task: this server has {', '.join(_TASKS)}, given {value!r}")
    return {"task": _TASKS[value]}


_TASKS: Mapping[str, TaskOption] = {"text_generation": "generate", "embeddings": "embed", "rerank": "score"}
MEANINGS: Mapping[str, Meaning] = {
    "task": _task,
    "rest_port": _same("port"),
    "rest_bind_address": _same("host"),
    "model_path": _same("model"),
    "source_model": _same("model"),
    "draft_source_model": _same("draft_model"),
    "model_name": lambda value: {"served_model_name": [value]},
    "target_device": _same("device"),
    "cache_dir": _same("cache_dir"),
    "weight-format": _weights,
    "log_level": _log_level,
    "api_key_file": _same("api_key_file"),
    "allowed_origins": _list("allowed_origins"),
    "allowed_methods": _list("allowed_methods"),
    "allowed_headers": _list("allowed_headers"),
    "allow_credentials": _same("allow_credentials"),
    "allowed_media_domains": _list("allowed_media_domains"),
    "allowed_local_media_path": _same("allowed_local_media_path"),
    "max_num_seqs": _same("max_num_seqs"),
    "max_num_batched_tokens": _same("max_num_batched_tokens"),
    "cache_size": _gibibytes,
    "kv_cache_precision": _same("kv_cache_dtype"),
    "enable_prefix_caching": _same("prefix_caching"),
    "tool_parser": _same("tool_parser"),
    "reasoning_parser": _same("reasoning_parser"),
    "enable_tool_guided_generation": _same("enable_tool_guided_generation"),
}
REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {  # the values that may stand, and what to do otherwise
    "pipeline_type": (("AUTO", "LM", "LM_CB"), "there is one pipeline, for text"),
    "dynamic_split_fuse": (("true",), "long prompts are always prefilled in chunks"),
    "verbose_response": (("false",), "POST /v3/tokenize shows the rendered prompt"),
    "pull": (("false",), "the start downloads what is not there"),
    "configure": (("false",), "there is no graph file"),
    "list_models": (("false",), "there is one model"),
    "config_path": ((), "start a server for each model"),
    "add_to_config": ((), "start a server for each model"),
    "remove_from_config": ((), "start a server for each model"),
    "gguf_filename": ((), "give safetensors or an OpenVINO IR"),
    "source_loras": ((), "there are no adapters"),
    "plugin_config": ((), "use --precision, --kv-cache-dtype, --num-threads, --prompt-lookup"),
    "extra_quantization_params": ((), "use --weights"),
}
WITHOUT_MEANING = (
    *("rest_workers", "grpc_bind_address", "grpc_workers", "grpc_max_threads", "grpc_memory_quota"),
    *("grpc_channel_arguments", "metrics_enable", "metrics_list", "file_system_poll_wait_seconds", "log_path"),
    *("trace_path", "overwrite_models", "cache_interval_multiplier", "max_prompt_len", "model_distribution_policy"),
)
_REPOSITORY = "model_repository_path"  # where models by the name of `source_model` are
_GRPC_PORT = "port"
_MAY_STAND_ALONE = {  # and are true then
    *("allow_credentials", "enable_prefix_caching", "enable_tool_guided_generation", "metrics_enable"),
    *("overwrite_models", "verbose_response", "pull", "configure", "list_models", "dynamic_split_fuse"),
}


@dataclass(frozen=True, slots=True)
class OvmsFlags:
    """Holds what a command line says in OVMS's words."""

    names: tuple[str, ...]
    values: Values  # by the names of our options
    remarks: tuple[str, ...]  # for the log
    rest: tuple[str, ...]  # our own arguments

    def check_profile(self, profile: str) -> None:
        """Raises InvalidOption where they do not belong."""
        if self.names and profile != "ovms":
            raise InvalidOption(
                f"--{self.names[0]} is a flag of OpenVINO Model Server: it is read with --profile ovms; "
                "ours are spelt with hyphens, see ouzel serve --help"
            )


def split_ovms_flags(arguments: Sequence[str]) -> OvmsFlags:
    """Raises InvalidOption for those that are refused."""
    known = [*MEANINGS, *REFUSED, *WITHOUT_MEANING, _REPOSITORY]
    if _is_own_task(arguments):
        known.remove("task")
    if any(argument.partition("=")[0] == "--rest_port" for argument in arguments):
        known.append(_GRPC_PORT)  # elsewhere it is ours
    parser = OneLineParser(prog="ouzel", add_help=False, allow_abbrev=False)
    for name in known:
        optional = {"nargs": "?", "const": "true"} if name in _MAY_STAND_ALONE else {}
        parser.add_argument(f"--{name}", dest=name, default=argparse.SUPPRESS, **optional)  # type: ignore[arg-type]
    namespace, rest = parser.parse_known_args(list(arguments))
    flags: dict[str, str] = vars(namespace)
    values: Values = {}
    for name, value in flags.items():
        if name in REFUSED:
            _check_refused(name, value)
        values |= MEANINGS[name](value) if name in MEANINGS else {}
    values |= _local_model(flags)
    remarks = [name for name in flags if name in (*WITHOUT_MEANING, _GRPC_PORT)]
    return OvmsFlags(
        names=tuple(flags),
        values=values,
        remarks=tuple(f"OpenVINO Model Server's --{name} has no meaning here" for name in remarks),
        rest=tuple(rest),
    )


def _is_own_task(arguments: Sequence[str]) -> bool:
    """Tells whether `--task` has a value of ours, which has other words for the same."""
    values = [argument.partition("=")[2] for argument in arguments if argument.startswith("--task=")]
    values += [value for flag, value in pairwise(arguments) if flag == "--task"]
    return any(value in get_args(TaskOption) for value in values)


def _check_refused(name: str, value: str) -> None:
    allowed, instead = REFUSED[name]
    if value not in allowed:
        raise InvalidOption(f"--{name}: {instead}, given {value!r}")


def _local_model(flags: Mapping[str, str]) -> Values:
    """Returns `source_model` in the repository, under its own name, where it has been pulled."""
    source = flags.get("source_model", "")
    directory = Path(flags.get(_REPOSITORY, "")) / source
    if not source or _REPOSITORY not in flags or not directory.is_dir():
        return {}
    return {"model": str(directory), "served_model_name": [flags.get("model_name", source)]}
