"""A stand-in for vLLM 0.33: its names, its way of being called, and no model.

`names.json` is made from vLLM's own source (`python -m tools.vllm.names`); a name that is not there is an error here.
It says what the user said, else repeats the prompt for ever, as the parrot of tests/api/serving.py does.
"""

from .engine import LLMEngine
from .names import VERSION as __version__
from .names import EngineArgs

__all__ = ["EngineArgs", "LLMEngine", "__version__"]
