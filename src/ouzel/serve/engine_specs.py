"""Describes the engines of a model, which start in processes of their own."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ouzel.checkpoint.declared_task import is_speaker_type, is_speech_type
from ouzel.checkpoint.model_files import read_config_json
from ouzel.config import EngineConfig
from ouzel.engine_client import EngineClient, EnginePool, Engines, EngineSpec
from ouzel.machine.free_memory import available_bytes
from ouzel.machine.machine import quota_cores
from ouzel.machine.processors import divide_processors, divide_quota, num_processors
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.options import Options

logger = logging.getLogger(__name__)

# An encoder of sound, and a model that speaks, keep all processors busy for seconds. Chats beside
# them get nine tenths of the processors with this niceness; without chats it costs nothing.
_SPEECH_NICENESS = 10


def make_engines(
    options: Options,
    local: LocalModel,
    *,
    memory_share: float = 1.0,
    limit_bytes: int | None = None,
) -> Engines:
    """Returns the engine of a model, or a pool of several; the caller starts and closes it.

    The engines get `memory_share` of the free memory, and at most `limit_bytes` together.
    """
    start_link = None
    if options.vllm.engine_url:
        from ouzel.serve.vllm_engine import link_to_server  # noqa: PLC0415  rarely needed

        start_link = link_to_server(options, local)
    max_queued_requests = options.limits.max_queued_requests
    specs = engine_specs(options, local, memory_share, limit_bytes)
    name = local.names_by(options.model)[0]
    members = [
        EngineClient(
            msgspec.structs.replace(
                spec, label=f"{number} of {name}" if len(specs) > 1 else f"of {name}"
            ),
            in_thread=not options.engine.engine_process,
            start_link=start_link,
            max_queued_requests=max_queued_requests,
            step_timeout_s=options.engine.step_timeout_s,
        )
        for number, spec in enumerate(specs)
    ]
    return (
        members[0]
        if len(members) == 1
        else EnginePool(members, max_queued_requests=max_queued_requests)
    )


def engine_specs(
    options: Options, local: LocalModel, memory_share: float, limit_bytes: int | None = None
) -> list[EngineSpec]:
    """Returns an engine's specification for each replica; they share `memory_share` equally."""
    if options.vllm.is_chosen:
        from ouzel.serve.vllm_engine import child_spec  # noqa: PLC0415  rarely needed

        return [child_spec(options, local)]
    configs = engine_configs(options.engine)
    memory: dict[str, float | None] = {
        "memory_share": memory_share / len(configs),
        "free_bytes": available_bytes(),
        "limit_bytes": None if limit_bytes is None else limit_bytes // len(configs),
    }
    if len(configs) == 1:
        return [engine_spec(options, local, configs[0], memory)]
    return [
        engine_spec(options, local, config, memory, processors=processors)
        for config, processors in zip(configs, divide_processors(len(configs)), strict=True)
    ]


def engine_configs(engine: EngineConfig) -> list[EngineConfig]:
    """Returns the options of each replica.

    Without `num_threads` in the options, the replicas share the CPU quota of the container.
    """
    configs = [_replica_config(engine, number) for number in range(engine.replicas)]
    if engine.num_threads or not engine.device.startswith("CPU"):
        return configs
    quota = quota_cores()
    shares = divide_quota(engine.replicas, quota, num_processors())
    if any(shares):
        logger.info(
            "the CPU quota of the container is %g processors: %s threads",
            quota,
            " and ".join(map(str, shares)),
        )
    return [
        msgspec.structs.replace(config, num_threads=share)
        for config, share in zip(configs, shares, strict=True)
    ]


def _replica_config(engine: EngineConfig, number: int) -> EngineConfig:
    """Gives each replica a prefix cache directory of its own: only one engine may write to one."""
    if engine.replicas == 1 or not engine.prefix_cache_dir:
        return engine
    return msgspec.structs.replace(
        engine,
        prefix_cache_dir=os.path.join(engine.prefix_cache_dir, f"replica-{number}"),
        prefix_cache_dir_gib=engine.prefix_cache_dir_gib / engine.replicas,
    )


def engine_spec(
    options: Options,
    local: LocalModel,
    engine: EngineConfig,
    memory: Mapping[str, float | None],
    *,
    processors: tuple[int, ...] = (),
) -> EngineSpec:
    """Returns the specification of one engine.

    It has the name of the factory instead of the factory: this process must not load OpenVINO.
    """
    return EngineSpec(
        factory="ouzel.serve.engine_factories:openvino_engine",
        options={
            "model": msgspec.to_builtins(local.put_paths_into(options.model)),
            "engine": msgspec.to_builtins(engine),
            **memory,
        },
        log_level=options.observability.log_level,
        log_format=options.observability.log_format,
        processors=processors,
        niceness=_SPEECH_NICENESS if _is_speech_model(local.directory) else 0,
    )


def _is_speech_model(directory: Path) -> bool:
    model_type = str(read_config_json(directory).get("model_type"))
    return is_speech_type(model_type) or is_speaker_type(model_type)
