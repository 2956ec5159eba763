"""Reads LMI's environment variables and `serving.properties` as Ouzel's options (profile `lmi`).

Each source beats the sources before it: the aliases of LMI's container, `SERVING_*` and `OPTION_*`,
the model directory's `serving.properties`, SageMaker's variables. Ouzel's own options beat all. The
log names settings without a meaning here; a setting that would change the model or its answers is
refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ouzel.config.model import TaskOption
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.drafts import list_unread_keys, read_speculative_config

Values = dict[str, object]

_MODEL_DIRECTORY = "/opt/ml/model"  # SageMaker's directory for the model
_DEFAULTS: Values = {"host": "0.0.0.0", "port": "8080"}  # SageMaker expects this address

_ALIASES = {
    "HF_MODEL_ID": "model_id",
    "HF_REVISION": "revision",
    "HF_TASK": "task",
    "HF_MODEL_QUANTIZE": "quantize",
    "HF_MODEL_TRUST_REMOTE_CODE": "trust_remote_code",
    "SM_NUM_GPUS": "tensor_parallel_degree",
    "TENSOR_PARALLEL_DEGREE": "tensor_parallel_degree",
    "PIPELINE_PARALLEL_DEGREE": "pipeline_parallel_degree",
    "MAX_CONCURRENT_REQUESTS": "job_queue_size",
    "MAX_BATCH_PREFILL_TOKENS": "max_rolling_batch_prefill_tokens",
    "MAX_BATCH_SIZE": "max_rolling_batch_size",
    "CUDA_MEMORY_FRACTION": "gpu_memory_utilization",
    "ENABLE_CUDA_GRAPHS": "enforce_eager",
    "MODEL_LOADING_TIMEOUT": "model_loading_timeout",
    "PREDICT_TIMEOUT": "predict_timeout",
}
_SAGEMAKER = {
    "SAGEMAKER_MAX_PAYLOAD_IN_MB": "max_payload_in_mb",
    "SAGEMAKER_MAX_REQUEST_SIZE": "max_request_size",
    "SAGEMAKER_BIND_TO_PORT": "port",
    "SAGEMAKER_NUM_MODEL_WORKERS": "num_model_workers",
    "SAGEMAKER_STARTUP_TIMEOUT": "model_loading_timeout",
    "SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS": "predict_timeout",
}
_PRECISIONS = {"auto": "auto", "fp32": "f32", "float32": "f32", "float": "f32"} | dict.fromkeys(
    ("fp16", "float16", "half", "bf16", "bfloat16"),
    "auto",  # half the bits, as far as the CPU has them
)
_TASKS: Mapping[str, TaskOption] = {
    "auto": "auto",
    **dict.fromkeys(("text-generation", "generate"), "generate"),
    **dict.fromkeys(
        ("text-embedding", "feature-extraction", "sentence-similarity", "embed"), "embed"
    ),
    **dict.fromkeys(("text-classification", "classify", "rerank", "score"), "score"),
}
_POOLING = {
    "mean": "mean",
    "mean_tokens": "mean",
    "cls": "cls",
    "cls_token": "cls",
    "lasttoken": "lasttoken",
}
# Settings that are not supported, with the only allowed value.
_REFUSED = {"revision": "main", "bedrock_compat": "false", "sigmoid": "true"}
_VLLM_HANDLER = "vllm_async_service"
_ADAPTERS = ("enable_lora", "max_loras", "max_lora_rank")  # the first turns the others on
_SPECULATION = "speculative_config"
_MAX_LORAS = "4"  # LMI's default


@dataclass(frozen=True, slots=True)
class Setting:
    key: str  # lower case, without `option.`
    value: str
    origin: str  # the variable or file of the setting, for messages

    @property
    def description(self) -> str:
        return f"LMI's {self.key} ({self.origin})"


def _same(option: str) -> Callable[[Setting], Values]:
    return lambda setting: {option: setting.value}


def _boolean(option: str) -> Callable[[Setting], Values]:
    return lambda setting: {option: setting.value.lower()}


def _names(option: str) -> Callable[[Setting], Values]:
    return lambda setting: {option: [name.strip() for name in setting.value.split(",")]}


def _map_value(option: str, known: Mapping[str, str]) -> Callable[[Setting], Values]:
    """Returns a reader that maps LMI's values to Ouzel's by `known`."""

    def read(setting: Setting) -> Values:
        if setting.value.lower() not in known:
            raise InvalidOption(
                f"{setting.description}: must be one of {', '.join(known)}, given {setting.value!r}"
            )
        return {option: known[setting.value.lower()]}

    return read


def _reranking(setting: Setting) -> Values:
    return {"task": "score"} if setting.value.lower() == "true" else {}


def _entry_point(setting: Setting) -> Values:
    """Sets `lmi_vector_lists` if the entry point is LMI's handler on vLLM.

    This handler answers one text with a list of one vector.
    """
    return {"lmi_vector_lists": "true"} if _VLLM_HANDLER in setting.value else {}


def _address(setting: Setting) -> Values:
    try:
        url = urlsplit(setting.value)
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if host is None or url.scheme not in ("http", "https"):
        raise InvalidOption(
            f"{setting.description}: must be like http://0.0.0.0:8080, given {setting.value!r}"
        )
    return {"host": host, "port": str(port or 8080)}


def _megabytes(setting: Setting) -> Values:
    if not setting.value.isdecimal():
        raise InvalidOption(
            f"{setting.description}: must be a whole number, given {setting.value!r}"
        )
    return {"max_body_bytes": int(setting.value) * 2**20}


def _images_per_prompt(setting: Setting) -> Values:
    """Reads vLLM's limits, `image=2,video=1` or `{"image": 2}`, for images and videos."""
    try:
        if setting.value.startswith("{"):
            counts = msgspec.json.decode(setting.value, type=dict[str, int])
        else:
            counts = {
                name.strip(): int(count)
                for name, _, count in map(_parted, setting.value.split(","))
            }
    except ValueError as error:  # errors of msgspec included
        raise InvalidOption(
            f"{setting.description}: must be like image=2, given {setting.value!r}"
        ) from error
    ours = {"image": "max_images", "video": "max_videos"}
    return {option: counts[name] for name, option in ours.items() if name in counts}


def _speculation(setting: Setting) -> Values:
    return read_speculative_config(setting.value, setting.description)


def _remarks_on_keys(setting: Setting) -> list[str]:
    """Returns a line of the log for each key of a setting that has no meaning here."""
    if setting.key != _SPECULATION:
        return []
    return [
        f"{setting.description}: {key} has no meaning here"
        for key in list_unread_keys(setting.value, setting.description)
    ]


def _hosts(setting: Setting) -> Values:
    """Reads a list of hosts: `a.org,b.org` or `["a.org", "b.org"]`."""
    if not setting.value.startswith("["):
        return {"allowed_media_domains": [name.strip() for name in setting.value.split(",")]}
    try:
        return {"allowed_media_domains": msgspec.json.decode(setting.value, type=list[str])}
    except msgspec.MsgspecError as error:
        raise InvalidOption(
            f"{setting.description}: must be a list of hosts, given {setting.value!r}"
        ) from error


def _parted(text: str) -> tuple[str, str, str]:
    return text.partition("=")


MEANINGS: Mapping[str, Callable[[Setting], Values]] = {
    "model_id": _same("model"),
    "served_model_name": _names("served_model_name"),
    "max_model_len": _same("max_model_len"),
    "chat_template": _same("chat_template"),
    "dtype": _map_value("precision", _PRECISIONS),
    "task": _map_value("task", _TASKS),
    "reranking": _reranking,
    "pooling": _map_value("pooling", _POOLING),
    "normalize": _boolean("normalize"),
    "entrypoint": _entry_point,
    "max_rolling_batch_size": _same("max_num_seqs"),
    "max_num_seqs": _same("max_num_seqs"),
    "max_rolling_batch_prefill_tokens": _same("max_num_batched_tokens"),
    "max_num_batched_tokens": _same("max_num_batched_tokens"),
    "enable_prefix_caching": _boolean("prefix_caching"),
    "max_logprobs": _same("max_logprobs"),
    "limit_mm_per_prompt": _images_per_prompt,
    _SPECULATION: _speculation,
    "speculative_draft_model": _same("draft_model"),
    "allowed_media_domains": _hosts,
    "allowed_local_media_path": _same("allowed_local_media_path"),
    "job_queue_size": _same("max_queued_requests"),
    "max_request_size": _same("max_body_bytes"),
    "max_payload_in_mb": _megabytes,
    "tgi_compat": _boolean("lmi_tgi_compat"),
    "inference_address": _address,
    "port": _same("port"),
    "certificate_file": _same("ssl_certfile"),
    "private_key_file": _same("ssl_keyfile"),
    "cors_allowed_origin": _names("allowed_origins"),
    "cors_allowed_methods": _names("allowed_methods"),
    "cors_allowed_headers": _names("allowed_headers"),
}


def read_lmi_settings(environment: Mapping[str, str], model: str) -> tuple[Values, list[str]]:
    """Returns values by the names of Ouzel's options, and remarks for the log.

    Raises InvalidOption.

    `model` is our own option.
    """
    values = dict(_DEFAULTS)
    remarks: list[str] = []
    directory = _model_directory(environment, model)
    if not model and (directory / "config.json").is_file():
        values["model"] = str(directory)
    settings = {each.key: each for each in _settings(environment, directory)}
    adapters = _adapters(settings, directory)
    values |= adapters
    for setting in settings.values():
        if adapters and setting.key in _ADAPTERS:
            continue
        meaning = MEANINGS.get(setting.key)
        if setting.key in _REFUSED and setting.value.lower() != _REFUSED[setting.key]:
            allowed = _REFUSED[setting.key]
            raise InvalidOption(
                f"{setting.description}: only {allowed!r} is supported, given {setting.value!r}"
            )
        found = meaning(setting) if meaning is not None else {}
        if found:
            values |= found
            remarks += _remarks_on_keys(setting)
        elif setting.key not in _REFUSED:
            remarks.append(f"{setting.description} has no meaning here")
    return values, remarks


def _adapters(settings: Mapping[str, Setting], directory: Path) -> Values:
    """Returns the options of adapters: each directory in `adapters` is an adapter of its name."""
    enabled = settings.get("enable_lora")
    if enabled is None or enabled.value.lower() != "true":
        return {}
    most = settings.get("max_loras", Setting("max_loras", _MAX_LORAS, ""))
    if not most.value.isdecimal():
        raise InvalidOption(f"{most.description}: must be a whole number, given {most.value!r}")
    parent = directory / "adapters"
    found = sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
    values: Values = {"max_loras": str(max(int(most.value), len(found)))}
    if found:
        values["lora"] = [f"{path.name}={path}" for path in found]
    if "max_lora_rank" in settings:
        values["max_lora_rank"] = settings["max_lora_rank"].value
    return values


def _model_directory(environment: Mapping[str, str], model: str) -> Path:
    if model and Path(model).is_dir():
        return Path(model)
    return Path(environment.get("SERVING_MODEL_STORE") or _MODEL_DIRECTORY)


def _settings(environment: Mapping[str, str], directory: Path) -> Iterator[Setting]:
    """Yields the settings of all sources; later ones beat earlier ones with the same key."""
    variables = {name: value.strip() for name, value in environment.items() if value.strip()}
    for name, key in _ALIASES.items():
        if name in variables:
            yield Setting(key, variables[name], f"environment {name}")
    for name, value in variables.items():
        prefix, _, rest = name.partition("_")
        if prefix in ("SERVING", "OPTION") and rest and name != "SERVING_MODEL_STORE":
            yield Setting(rest.lower(), value, f"environment {name}")
    path = directory / "serving.properties"
    for key, value in _read_properties(path).items():
        yield Setting(key.removeprefix("option.").lower(), value, str(path))
    for name, key in _SAGEMAKER.items():
        if name in variables:
            yield Setting(key, variables[name], f"environment {name}")


def _read_properties(path: Path) -> dict[str, str]:
    """Reads Java's properties: `key=value` or `key: value`, # or ! comments, \\ continues lines."""
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(f"{path}: {error}") from error
    properties: dict[str, str] = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, *rest = re.split(r"\s*[=:]\s*|\s+", line.strip(), maxsplit=1)
            if key and rest and rest[0]:
                properties[key] = rest[0]
    return properties
