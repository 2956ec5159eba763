"""Maps the options of a model to arguments of vLLM, and refuses options that vLLM does not have.

An option that the user wrote is honoured or refused, never ignored. An option that nobody wrote
leaves vLLM its own default.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from ouzel.config import EngineConfig, ModelConfig, VllmConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import format_flag

# Options that only the OpenVINO engine has.
_OF_OPENVINO = (
    *("lora", "max_loras", "max_lora_rank", "lora_parts", "matryoshka", "pooling", "normalize"),
    *("truncate", "max_document_chunks", "draft_model", "mtp", "weights", "recompress", "device"),
    *("state_cache_gib", "prompt_lookup", "deterministic", "prefix_cache_dir"),
    *("prefix_cache_dir_gib", "grammar_timeout_s", "num_threads", "engine_process", "replicas"),
)
_OF_THE_ENGINE = (
    *("precision", "kv_cache_dtype", "kv_cache_gib", "max_num_batched_tokens"),
    "prefix_caching",
)
_OF_A_CHILD = ("engine_python", "tensor_parallel_size", "gpu_memory_utilization", "engine_args")
_OF_A_SERVER = (
    *("engine_url", "engine_api_key", "engine_ca_certs", "engine_priorities"),
    "engine_wait_s",
)
_DTYPES = {"auto": "auto", "bf16": "bfloat16", "f16": "float16", "f32": "float32"}
_CACHE_DTYPES = {"auto": "auto", "bf16": "bfloat16", "f16": "float16"}

# Arguments that --engine-args must not set, and the options that set them.
_OWN_OPTIONS: Mapping[str, str] = {
    "model": "MODEL",
    "dtype": "--precision",
    "kv_cache_memory_bytes": "--kv-cache-gib",
    "enable_prefix_caching": "--prefix-caching",
    **{
        name: format_flag(name)
        for name in (
            *("tensor_parallel_size", "gpu_memory_utilization", "max_model_len", "max_num_seqs"),
            *("max_num_batched_tokens", "max_logprobs"),
        )
    },
}
_FIXED = (
    *("tokenizer", "skip_tokenizer_init", "scheduling_policy", "structured_outputs_config"),
    *("logprobs_mode", "generation_config", "disable_log_stats", "reasoning_config"),
    *("reasoning_parser", "data_parallel_size"),
)


def check_vllm(
    vllm: VllmConfig, model: ModelConfig, engine: EngineConfig, given: Collection[str]
) -> None:
    """Checks the options of a model that vLLM serves.

    `given` names the options that the user wrote.

    Raises InvalidOption.
    """
    if model.task not in ("auto", "generate"):
        raise InvalidOption(f"--task: must be generate with --engine vllm, given {model.task}")
    if vllm.engine_url:
        if vllm.engine != "vllm" and "engine" in given:
            raise InvalidOption(f"--engine: must be vllm beside --engine-url, given {vllm.engine}")
        refused = (*_OF_OPENVINO, *_OF_THE_ENGINE, *_OF_A_CHILD)
        _refuse(given, refused, "is not for --engine-url, whose server has its own options")
        return
    if not vllm.engine_python:
        raise InvalidOption("--engine vllm: needs --engine-python, or --engine-url")
    _refuse(given, _OF_OPENVINO, "is not for --engine vllm")
    _refuse(given, _OF_A_SERVER, "needs --engine-url")
    if not Path(vllm.engine_python).is_file():
        raise InvalidOption(
            f"--engine-python: must be a Python interpreter, given {vllm.engine_python!r}"
        )
    read_engine_arguments(vllm, model, engine, given)


def check_without_vllm(given: Collection[str]) -> None:
    """Raises InvalidOption if an option of vLLM is given to a model that OpenVINO serves."""
    _refuse(given, (*_OF_A_CHILD, *_OF_A_SERVER), "needs --engine vllm")


def _refuse(given: Collection[str], names: Collection[str], reason: str) -> None:
    for name in names:
        if name in given:
            raise InvalidOption(f"{format_flag(name)}: {reason}")


def read_engine_arguments(
    vllm: VllmConfig, model: ModelConfig, engine: EngineConfig, given: Collection[str]
) -> dict[str, object]:
    """Returns the arguments of vLLM's EngineArgs that the options set. Raises InvalidOption."""
    arguments: dict[str, object] = {
        "tensor_parallel_size": vllm.tensor_parallel_size,
        "enable_prefix_caching": engine.prefix_caching,
        "dtype": _mapped("precision", engine.precision, _DTYPES),
        "kv_cache_dtype": _mapped("kv_cache_dtype", engine.kv_cache_dtype, _CACHE_DTYPES),
    }
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        if name in given:
            arguments[name] = getattr(engine, name)
    if model.max_model_len is not None:
        arguments["max_model_len"] = model.max_model_len
    if engine.kv_cache_gib is not None:
        arguments["kv_cache_memory_bytes"] = int(engine.kv_cache_gib * 2**30)
    if vllm.gpu_memory_utilization is not None:
        arguments["gpu_memory_utilization"] = vllm.gpu_memory_utilization
    return arguments | _further(vllm)


def _mapped(name: str, value: str, words: Mapping[str, str]) -> str:
    if value not in words:
        raise InvalidOption(
            f"{format_flag(name)}: must be one of {', '.join(words)} with --engine vllm, "
            f"given {value}"
        )
    return words[value]


def _further(vllm: VllmConfig) -> dict[str, object]:
    if not vllm.engine_args:
        return {}
    try:
        arguments: dict[str, object] = msgspec.json.decode(vllm.engine_args, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise InvalidOption(
            f"--engine-args: must be a JSON object, given {vllm.engine_args!r}"
        ) from error
    for name, value in arguments.items():
        if name in _OWN_OPTIONS:
            raise InvalidOption(f"--engine-args: {name} is set by {_OWN_OPTIONS[name]}")
        if name in _FIXED:
            raise InvalidOption(f"--engine-args: {name} must not be set: answers depend on it")
        if name == "kv_cache_dtype" and value in _CACHE_DTYPES.values():
            raise InvalidOption("--engine-args: kv_cache_dtype is set by --kv-cache-dtype")
    return arguments
