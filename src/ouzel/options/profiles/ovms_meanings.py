"""Maps OpenVINO Model Server's settings, of flags and graphs, to Ouzel's options.

The log names settings without a meaning for Ouzel. Settings that would change the answers are
refused. The few settings that make approximations get the nearest supported value, with a warning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from ouzel.config.model import TaskOption
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.suggestion import did_you_mean

Values = dict[str, object]  # values by the names of Ouzel's options
Meaning = Callable[[str], Values]


@dataclass(slots=True)
class Settings:
    """Collects the options of a command line or a graph, and notes for the log."""

    values: Values = field(default_factory=dict)
    without_meaning: list[str] = field(default_factory=list)
    warnings: list[str] = field(
        default_factory=list
    )  # sentences about answers that can differ from OVMS's

    def below(self, above: "Settings") -> "Settings":
        """Returns both together; `above` wins where both have a value."""
        return Settings(
            self.values | above.values,
            self.without_meaning + above.without_meaning,
            self.warnings + above.warnings,
        )


def _same(option: str) -> Meaning:
    return lambda value: {option: value}


def _list(option: str) -> Meaning:
    return lambda value: {option: [part.strip() for part in value.split(",")]}


def _gibibytes(value: str) -> Values:
    return {} if value == "0" else {"kv_cache_gib": value}  # 0: no limit


def _log_level(value: str) -> Values:
    return {"log_level": "debug" if value == "TRACE" else value.lower()}


def _weights(value: str) -> Values:
    return {"weights": {"fp16": "bf16", "fp32": "f32"}.get(value, value)}


def _task(value: str) -> Values:
    """Returns Ouzel's task. Raises InvalidOption for tasks that make images."""
    if value not in TASKS:
        raise InvalidOption(f"task: must be one of {', '.join(TASKS)}, given {value!r}")
    return {"task": TASKS[value]}


def _pooling(value: str) -> Values:
    """Returns the pooling; accepts Ouzel's words too, since the flag has the same name."""
    return {"pooling": {"CLS": "cls", "LAST": "lasttoken", "MEAN": "mean"}.get(value, value)}


def _idle_unload(value: str) -> Values:
    """Returns the options for groups that are unloaded when idle; 0: they stay in memory."""
    return {} if value == "0" else {"idle_unload_s": value, "one_group": True}


TASKS: Mapping[str, TaskOption] = {
    "text_generation": "generate",
    "embeddings": "embed",
    "rerank": "score",
    "speech2text": "transcribe",
    "text2speech": "speak",
}
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
    "verbose_response": _same("verbose_response"),
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
    "pooling": _pooling,
    "normalize": _same("normalize"),
    "truncate": _same("truncate"),
    "max_length": _same("max_model_len"),
    "idle_unload_timeout_seconds": _idle_unload,
    "max_allowed_chunks": _same("max_document_chunks"),
}
_PICTURES = "this server generates no images; leave it out"
_SPEECH = "a voice model of this server needs none; leave it out"
# The supported values of each setting, and advice for the others.
REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "pipeline_type": (
        ("AUTO", "LM", "LM_CB", "VLM", "VLM_CB"),
        "there is one pipeline, for text and images",
    ),
    "extra_quantization_params": (
        (),
        "--weight-format and ouzel quantize say how weights are compressed",
    ),
    **dict.fromkeys(
        (
            *(
                "resolution",
                "max_resolution",
                "default_resolution",
                "num_images_per_prompt",
                "guidance_scale",
            ),
            *(
                "max_num_images_per_prompt",
                "default_num_inference_steps",
                "max_num_inference_steps",
            ),
        ),
        ((), _PICTURES),
    ),
    **dict.fromkeys(("vocoder", "model_type"), ((), _SPEECH)),
}
WITHOUT_MEANING = (
    *("rest_workers", "grpc_bind_address", "grpc_workers", "grpc_max_threads", "grpc_memory_quota"),
    *("grpc_channel_arguments", "metrics_enable", "metrics_list", "log_path"),
    *("trace_path", "dynamic_split_fuse", "cache_interval_multiplier", "max_prompt_len"),
    "model_distribution_policy",
    *(
        "num_streams",
        "disable_input_count_validation",
        "graph_initial_queue_size",
        "graph_queue_max_size",
    ),
    "group_name",  # read by --add_to_config; a model that is alone is a group of its own
    *("batch_size", "shape", "layout", "mean", "scale", "color_format"),
    *("model_version_policy", "nireq", "stateful", "idle_sequence_cleanup"),
    *("max_sequence_number", "low_latency_transformation", "cpu_extension"),
    *("sequence_cleaner_poll_wait_minutes", "custom_node_resources_cleaner_interval_seconds"),
)
# Values that ask for the way in which Ouzel works anyway.
_AS_HERE = frozenset({("dynamic_split_fuse", "true")})

# OpenVINO's properties, and further ones of OVMS.
PLUGIN_MEANINGS: Mapping[str, Meaning] = {
    "KV_CACHE_PRECISION": _same("kv_cache_dtype"),
    "CACHE_DIR": _same("cache_dir"),
    "INFERENCE_NUM_THREADS": _same("num_threads"),
    "INFERENCE_PRECISION_HINT": _same("precision"),
    "prompt_lookup": _same("prompt_lookup"),
}
PLUGIN_WITHOUT_MEANING = (
    frozenset(  # these tune speed and memory; OpenVINO refuses a property that it does not know
        {
            *(
                "NUM_STREAMS",
                "PERFORMANCE_HINT",
                "PERFORMANCE_HINT_NUM_REQUESTS",
                "MODEL_DISTRIBUTION_POLICY",
            ),
            *(
                "SCHEDULING_CORE_TYPE",
                "ENABLE_CPU_PINNING",
                "ENABLE_HYPER_THREADING",
                "ENABLE_CPU_RESERVATION",
            ),
            *(
                "DYNAMIC_QUANTIZATION_GROUP_SIZE",
                "COMPILATION_NUM_THREADS",
                "CACHE_MODE",
                "ENABLE_MMAP",
                "LOG_LEVEL",
            ),
            *(
                "EXECUTION_MODE_HINT",
                "ATTENTION_BACKEND",
                "DEVICE_PROPERTIES",
                "MAX_PROMPT_LEN",
                "MIN_RESPONSE_LEN",
            ),
            *(
                "PERF_COUNT",
                "AUTO_BATCH_TIMEOUT",
                "ALLOW_AUTO_BATCHING",
                "MODEL_PRIORITY",
                "DEVICE_ID",
                "WEIGHTS_PATH",
            ),
            *(
                "CPU_DENORMALS_OPTIMIZATION",
                "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE",
                "ENABLE_TENSOR_PARALLEL",
            ),
            *(
                "ENABLE_WEIGHTLESS",
                "TBB_PARTITIONER",
                "KEY_CACHE_GROUP_SIZE",
                "VALUE_CACHE_GROUP_SIZE",
            ),
            *(
                "KEY_CACHE_PRECISION",
                "VALUE_CACHE_PRECISION",
                "ACTIVATIONS_SCALE_FACTOR",
                "ENABLE_LAYER_OFFLOADING",
            ),
            *(
                "MULTI_DEVICE_PRIORITIES",
                "ENABLE_STARTUP_FALLBACK",
                "ENABLE_RUNTIME_FALLBACK",
                "COMPATIBILITY_CHECK",
            ),
        }
    )
)
_PLUGIN_PREFIXES = ("NPU", "GPU_")
_CACHE = "kv_cache_dtype"
_FOUR_BITS, _EIGHT_BITS = "u4", "u8"


def take_setting(settings: Settings, name: str, value: str) -> None:
    """Applies one setting. Raises InvalidOption if the setting is not supported."""
    if name in REFUSED:
        allowed, instead = REFUSED[name]
        if value not in allowed:
            raise InvalidOption(f"{name}: {instead}, given {value!r}")
    elif name in MEANINGS:
        _take_values(settings, name, MEANINGS[name](value))
    elif name == "plugin_config":
        take_plugin_config(settings, value)
    elif (name, value) not in _AS_HERE:
        settings.without_meaning.append(name)


def take_plugin_config(settings: Settings, text: str) -> None:
    """Applies a JSON object of OpenVINO properties. Raises InvalidOption."""
    try:
        properties = msgspec.json.decode(text, type=dict[str, object]) if text.strip() else {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidOption(
            f"plugin_config: must be a JSON object, given {text[:200]!r}"
        ) from error
    for name, value in properties.items():
        if name in PLUGIN_MEANINGS:
            _take_values(settings, f"plugin_config {name}", PLUGIN_MEANINGS[name](_format(value)))
        elif name in PLUGIN_WITHOUT_MEANING or name.startswith(_PLUGIN_PREFIXES):
            settings.without_meaning.append(f"plugin_config {name}")
        else:
            known = [*PLUGIN_MEANINGS, *PLUGIN_WITHOUT_MEANING]
            raise InvalidOption(
                f"plugin_config: unknown property {name}{did_you_mean([name], known)}; leave it out"
            )


def _take_values(settings: Settings, name: str, values: Values) -> None:
    """Adds the values; a KV cache of four bits becomes one of eight, with a warning."""
    if values.get(_CACHE) == _FOUR_BITS:
        values = values | {_CACHE: _EIGHT_BITS}
        settings.warnings.append(
            f"{name} {_FOUR_BITS}: the KV cache is {_EIGHT_BITS} here, with twice the memory"
        )
    settings.values |= values


def _format(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
