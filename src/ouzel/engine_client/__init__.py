"""The client is the one way to an engine: it lives in the event loop, the engine in a child process or a thread."""

from ouzel.engine.loop import EngineSpec
from ouzel.engine_client.client import EngineClient
from ouzel.engine_client.engine_state import EngineState
from ouzel.engine_client.engines import Engines
from ouzel.engine_client.pool import EnginePool

__all__ = ["EngineClient", "EnginePool", "EngineSpec", "EngineState", "Engines"]
