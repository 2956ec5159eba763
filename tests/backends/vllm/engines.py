"""Creates the engine under test in this process, with the stand-in for vLLM."""

import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ouzel.backends.vllm.child_engine import VllmEngine, create_engine
from ouzel.engine.base import Engine
from ouzel.types.step_output import StepOutput
from tests.api.byte_tokens import byte_library_tokenizer

_DIRECTORY = tempfile.TemporaryDirectory(prefix="ouzel-vllm-")


@cache
def model_directory() -> str:
    """Returns a directory with a tokenizer whose tokens 0 to 255 are bytes, for vLLM's grammars."""
    byte_library_tokenizer().save(str(Path(_DIRECTORY.name) / "tokenizer.json"))
    return _DIRECTORY.name


def make_engine(
    *, reasoning_marks: tuple[str, str] | None = None, **arguments: object
) -> VllmEngine:
    always = {"model": model_directory(), "enable_prefix_caching": True}
    return create_engine({"arguments": always | arguments, "reasoning_marks": reasoning_marks})


def create_vllm(options: dict[str, object]) -> Engine:
    """Creates an engine for tests/api/server_setup.py, and ignores the options."""
    return make_engine(max_num_seqs=64)


def list_vllm_requests() -> list[Any]:
    """Returns all requests that the stand-in got in this process."""
    requests: list[Any] = sys.modules["vllm.engine"].LLMEngine.requests
    return requests


def run(engine: Engine, *, num_steps: int = 200) -> list[StepOutput]:
    """Steps until all requests have ended."""
    outputs: list[StepOutput] = []
    while engine.has_unfinished():
        outputs += engine.step()
        num_steps -= 1
        assert num_steps > 0
    return outputs
