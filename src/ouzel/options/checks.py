"""Options that contradict each other, or this machine, are refused before anything is loaded."""

from pathlib import Path

from ouzel.config import (
    EngineConfig,
    LimitsConfig,
    MediaConfig,
    ModelConfig,
    ObservabilityConfig,
    ServerConfig,
)
from ouzel.machine.processors import num_processors
from ouzel.options.invalid_option import InvalidOption


def check_model(model: ModelConfig) -> None:
    """Raises InvalidOption where two guess."""
    if model.mtp and model.draft_model:
        raise InvalidOption(
            f"--mtp: must not stand beside --draft-model, given {model.draft_model!r}"
        )


def check_engine(engine: EngineConfig) -> None:
    """Raises InvalidOption. The backend says of some so too; here the engine's process need not be started for it."""
    if (
        engine.max_num_batched_tokens < engine.max_num_seqs
    ):  # one step must be able to decode every sequence
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
            f"--prefix-cache-dir: needs --prefix-caching, given {engine.prefix_cache_dir!r} without it"
        )
    if engine.deterministic:
        _check_deterministic(engine)
    _check_replicas(engine)


def check_both(model: ModelConfig, engine: EngineConfig) -> None:
    """Raises InvalidOption where an option of the model contradicts an option of its engine."""
    if engine.deterministic and (model.lora or model.max_loras):
        name, value = (
            ("lora", ",".join(model.lora)) if model.lora else ("max-loras", str(model.max_loras))
        )
        raise InvalidOption(f"--deterministic: must not stand beside --{name}, given {value}")


def _check_deterministic(engine: EngineConfig) -> None:
    if engine.device != "CPU":
        raise InvalidOption(f"--deterministic: needs --device CPU, given {engine.device}")
    least = (
        engine.max_num_seqs + 2
    )  # all others decode: three rows are left, as a prompt of three is not cut
    if engine.max_num_batched_tokens < least:
        raise InvalidOption(
            f"--deterministic: needs --max-num-batched-tokens >= --max-num-seqs + 2, {least}, "
            f"given {engine.max_num_batched_tokens}"
        )


def _check_replicas(engine: EngineConfig) -> None:
    if engine.replicas == 1:
        return
    if not engine.engine_process:
        raise InvalidOption(
            f"--replicas: needs --engine-process, given {engine.replicas} without it"
        )
    if engine.device.startswith("CPU") and engine.replicas > num_processors():
        raise InvalidOption(
            f"--replicas: must be <= the processors that this program may use, {num_processors()}, "
            f"given {engine.replicas}"
        )


def check_limits(limits: LimitsConfig) -> None:
    """Raises InvalidOption where a body of the allowed length does not fit."""
    total = limits.max_body_bytes_total
    if total is not None and total < limits.max_body_bytes:
        raise InvalidOption(
            f"--max-body-bytes-total: must be >= --max-body-bytes, {limits.max_body_bytes}, given {total}"
        )


def check_media(media: MediaConfig) -> None:
    """Raises InvalidOption."""
    path = media.allowed_local_media_path
    if path and not Path(path).is_dir():
        raise InvalidOption(f"--allowed-local-media-path: must be a directory, given {path!r}")
    if media.max_media_bytes_total < media.max_media_bytes:
        raise InvalidOption(
            f"--max-media-bytes-total: must be >= --max-media-bytes, {media.max_media_bytes}, "
            f"given {media.max_media_bytes_total}"
        )


def check_server(server: ServerConfig, observability: ObservabilityConfig) -> None:
    """Raises InvalidOption."""
    _check_cors(server)
    _check_metrics_port(observability, server)
    if server.verbose_response and server.profile != "ovms":
        raise InvalidOption(
            f"--verbose-response: needs --profile ovms, given --profile {server.profile}"
        )


def _check_cors(server: ServerConfig) -> None:
    """What is allowed must be allowed to somebody."""
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
