"""Refuses options that contradict each other or this machine, before anything is loaded."""

from collections.abc import Collection
from pathlib import Path

from ouzel.config import (
    EngineConfig,
    LimitsConfig,
    MediaConfig,
    ModelConfig,
    ModelsConfig,
    ObservabilityConfig,
    ServerConfig,
    VllmConfig,
)
from ouzel.machine.processors import num_processors
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import format_flag
from ouzel.options.vllm_options import check_vllm, check_without_vllm


def check_model_options(
    model: ModelConfig, engine: EngineConfig, vllm: VllmConfig, given: Collection[str]
) -> None:
    """Checks the options of one model; `given` names the options that the user has written.

    Raises InvalidOption.
    """
    if model.mtp and model.draft_model:
        raise InvalidOption(
            f"--mtp: cannot be used with --draft-model, given {model.draft_model!r}"
        )
    if vllm.is_chosen:
        check_vllm(vllm, model, engine, given)
        return
    check_without_vllm(given)
    if not (model.lora or model.max_loras):
        for name in ("lora_parts", "max_lora_rank"):
            if getattr(model, name):
                raise InvalidOption(f"{format_flag(name)}: needs --lora or --max-loras")
    _check_engine(engine)
    if engine.deterministic:
        _check_deterministic(model, engine)
    if engine.replicas > 1:
        _check_replicas(engine)


def check_server_options(
    limits: LimitsConfig,
    media: MediaConfig,
    server: ServerConfig,
    observability: ObservabilityConfig,
) -> None:
    """Checks the options that all models of a server share. Raises InvalidOption."""
    _check_limits(limits)
    _check_media(media)
    _check_cors(server)
    _check_metrics_port(observability, server)
    if server.verbose_response and server.profile != "ovms":
        raise InvalidOption(
            f"--verbose-response: needs --profile ovms, given --profile {server.profile}"
        )


def _check_engine(engine: EngineConfig) -> None:
    """Checks options that the backend would refuse too, before the engine's process starts."""
    # One step must be able to decode every sequence.
    if engine.max_num_batched_tokens < engine.max_num_seqs:
        raise InvalidOption(
            f"--max-num-batched-tokens: must be >= --max-num-seqs, {engine.max_num_seqs}, "
            f"given {engine.max_num_batched_tokens}"
        )
    if engine.kv_cache_dtype == "f32" and engine.precision != "f32":
        raise InvalidOption(
            f"--kv-cache-dtype: f32 needs --precision f32, given {engine.precision}"
        )
    if engine.kv_cache_dtype == "bf16" and engine.precision in ("f32", "int8"):
        raise InvalidOption(
            f"--kv-cache-dtype: bf16 needs --precision bf16 or auto, given {engine.precision}"
        )
    if engine.prefix_cache_dir and not engine.prefix_caching:
        raise InvalidOption(
            "--prefix-cache-dir: needs --prefix-caching, "
            f"given {engine.prefix_cache_dir!r} without it"
        )


def _check_deterministic(model: ModelConfig, engine: EngineConfig) -> None:
    if engine.device != "CPU":
        raise InvalidOption(f"--deterministic: needs --device CPU, given {engine.device}")
    # While all other sequences decode, a prompt must still get three rows: it is never cut shorter.
    least = engine.max_num_seqs + 2
    if engine.max_num_batched_tokens < least:
        raise InvalidOption(
            f"--deterministic: needs --max-num-batched-tokens >= --max-num-seqs + 2, {least}, "
            f"given {engine.max_num_batched_tokens}"
        )
    adapters = {"lora": ",".join(model.lora), "max-loras": str(model.max_loras or "")}
    for name, value in adapters.items():
        if value:
            raise InvalidOption(f"--deterministic: cannot be used with --{name}, given {value}")


def _check_replicas(engine: EngineConfig) -> None:
    if not engine.engine_process:
        raise InvalidOption(
            f"--replicas: needs --engine-process, given {engine.replicas} without it"
        )
    if engine.device.startswith("CPU") and engine.replicas > num_processors():
        raise InvalidOption(
            "--replicas: must be <= the processors that this program may use, "
            f"{num_processors()}, given {engine.replicas}"
        )


def check_models_options(models: ModelsConfig, *, loads_on_request: bool) -> None:
    """Checks the options of models that come and go. Raises InvalidOption."""
    if models.models_dir and not Path(models.models_dir).expanduser().is_dir():
        raise InvalidOption(f"--models-dir: must be a directory, given {models.models_dir!r}")
    if loads_on_request:
        return
    for name in ("models_dir", "max_loaded_models", "models_memory_gib", "one_group"):
        if getattr(models, name):
            raise InvalidOption(
                f"--{name.replace('_', '-')}: needs --load-on-request, given "
                f"{getattr(models, name)!r} without it"
            )


def _check_limits(limits: LimitsConfig) -> None:
    total = limits.max_body_bytes_total
    if total is not None and total < limits.max_body_bytes:
        raise InvalidOption(
            f"--max-body-bytes-total: must be >= --max-body-bytes, {limits.max_body_bytes}, "
            f"given {total}"
        )


def _check_media(media: MediaConfig) -> None:
    path = media.allowed_local_media_path
    if path and not Path(path).is_dir():
        raise InvalidOption(f"--allowed-local-media-path: must be a directory, given {path!r}")
    if media.max_media_bytes_total < media.max_media_bytes:
        raise InvalidOption(
            f"--max-media-bytes-total: must be >= --max-media-bytes, {media.max_media_bytes}, "
            f"given {media.max_media_bytes_total}"
        )


def _check_cors(server: ServerConfig) -> None:
    """Refuses the other CORS options if no origin is allowed."""
    if server.allowed_origins:
        return
    default = ServerConfig()
    for name in ("allowed_methods", "allowed_headers", "allow_credentials"):
        if getattr(server, name) != getattr(default, name):
            raise InvalidOption(f"--{name.replace('_', '-')}: needs --allowed-origins")


def _check_metrics_port(observability: ObservabilityConfig, server: ServerConfig) -> None:
    port = observability.metrics_port
    if port is None and observability.metrics_host:
        raise InvalidOption("--metrics-host: needs --metrics-port")
    if port and port == server.port and not server.uds:
        raise InvalidOption(f"--metrics-port: must differ from --port, given {port} for both")
