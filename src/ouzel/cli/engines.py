"""Factories that `EngineSpec` names: they run in the engine's process."""

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine
from ouzel.engine.core import EngineCore


def openvino_engine(options: dict[str, object]) -> Engine:
    """`options` holds the fields of ModelConfig, whose `model` is a local directory, and of EngineConfig."""
    model = msgspec.convert(options["model"], ModelConfig)
    engine = msgspec.convert(options["engine"], EngineConfig)
    return EngineCore(create_runner(model, engine), prefix_caching=engine.prefix_caching)
