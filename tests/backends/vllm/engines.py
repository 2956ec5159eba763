"""The engine under test in this process, over the stand-in."""

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
    """It has a tokenizer whose tokens 0 to 255 are bytes, for vLLM's grammars."""
    byte_library_tokenizer().save(str(Path(_DIRECTORY.name) / "tokenizer.json"))
    return _DIRECTORY.name


def make_engine(
    *, reasoning_marks: tuple[str, str] | None = None, **arguments: object
) -> VllmEngine:
    always = {"model": model_directory(), "enable_prefix_caching": True}
    return create_engine({"arguments": always | arguments, "reasoning_marks": reasoning_marks})


def create_vllm(options: dict[str, object]) -> Engine:
    """Is a factory for tests/api/server_setup.py; ignores the options of a fake engine."""
    return make_engine(max_num_seqs=64)


def asked_there() -> list[Any]:
    """What the stand-in was asked, in this process."""
    requests: list[Any] = sys.modules["vllm.engine"].LLMEngine.requests
    return requests


def run(engine: Engine, *, num_steps: int = 200) -> list[StepOutput]:
    """Steps to the end."""
    outputs: list[StepOutput] = []
    while engine.has_unfinished():
        outputs += engine.step()
        num_steps -= 1
        assert num_steps > 0
    return outputs
