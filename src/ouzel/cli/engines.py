"""Factories that `EngineSpec` names: they run in the engine's process."""

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine
from ouzel.engine.core import EngineCore
from ouzel.engine_client import EngineSpec


def openvino_spec(model: ModelConfig, engine: EngineConfig, *, log_level: str) -> EngineSpec:
    """The specification of an OpenVINO engine; `model.model` is a local directory."""
    options = {"model": msgspec.to_builtins(model), "engine": msgspec.to_builtins(engine)}
    return EngineSpec(factory="ouzel.cli.engines:openvino_engine", options=options, log_level=log_level)


def openvino_engine(options: dict[str, object]) -> Engine:
    model = msgspec.convert(options["model"], ModelConfig)
    engine = msgspec.convert(options["engine"], EngineConfig)
    return EngineCore(create_runner(model, engine), prefix_caching=engine.prefix_caching)
