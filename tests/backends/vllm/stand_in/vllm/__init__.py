"""Stands in for vLLM 0.33, with the same names and calls, and without a model.

`python -m tools.vllm.names` makes `names.json` from vLLM's source. A name that the file lacks is an
error. The answer repeats the last message of the user. Without messages it repeats the prompt for
ever, as the parrot of tests/api/serving.py does.
"""

from .engine import LLMEngine
from .names import VERSION as __version__
from .names import EngineArgs

__all__ = ["EngineArgs", "LLMEngine", "__version__"]
