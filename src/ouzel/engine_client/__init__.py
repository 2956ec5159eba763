"""The one way to an engine: a client in the event loop, an engine in a child process or a thread."""

from ouzel.engine.loop import EngineSpec
from ouzel.engine_client.client import EngineClient, EngineState

__all__ = ["EngineClient", "EngineSpec", "EngineState"]
