"""Connects the event loop with engines, which run in child processes or threads."""

from ouzel.engine.loop import EngineSpec
from ouzel.engine_client.client import EngineClient
from ouzel.engine_client.engine_state import EngineState
from ouzel.engine_client.engines import Engines
from ouzel.engine_client.pool import EnginePool

__all__ = ["EngineClient", "EnginePool", "EngineSpec", "EngineState", "Engines"]
