"""Makes a Python for --engine-python that has only msgspec and the stand-in for vLLM."""

import sys
import venv
from importlib.util import find_spec
from pathlib import Path

from tests.backends.vllm.conftest import STAND_IN


def make_interpreter(directory: Path, *, has_vllm: bool = True, has_msgspec: bool = True) -> str:
    """Makes the interpreter in `directory`; returns its path."""
    venv.create(directory, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = directory / "lib" / version / "site-packages"
    spec = find_spec("msgspec")
    assert spec is not None
    assert spec.origin is not None
    if has_msgspec:
        (packages / "msgspec").symlink_to(Path(spec.origin).parent)
    if has_vllm:
        (packages / "vllm").symlink_to(STAND_IN / "vllm")
    return str(directory / "bin" / "python")
