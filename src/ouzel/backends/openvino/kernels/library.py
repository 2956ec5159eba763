"""Finds the library of `ouzel-kernels`; the only importer of that package.

The package is optional: without it, or on another processor or runtime, the plugin multiplies all
matrices, and computes attention, by itself. The variable OUZEL_KERNELS_LEVEL names the instructions
that the kernels may use (`avx2`, `avx_vnni`, `avx512_vnni`, `amx`); `none` leaves the kernels out.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import NodeFactory, load_operations, ov
from ouzel.config import EngineConfig
from ouzel.machine.instructions import processor_flags

LEVEL_VARIABLE = "OUZEL_KERNELS_LEVEL"
_WIDE_LEVELS = ("amx", "emulated_amx")
_NEEDED_FLAGS = frozenset({"avx2", "fma", "f16c"})  # spelled like in Linux's /proc/cpuinfo


@dataclass(frozen=True, slots=True)
class Kernels:
    """The loaded library."""

    path: Path
    level: str  # the instructions in use, such as `avx512_vnni`
    factory: NodeFactory  # makes the operations

    @property
    def has_wide_rows(self) -> bool:
        """Tells whether many rows are multiplied in bf16, unless that is forbidden."""
        return self.level in _WIDE_LEVELS


@dataclass(frozen=True, slots=True)
class KernelsMissing:
    reason: str


@cache
def find_kernels() -> Kernels | KernelsMissing:
    """Loads the library once; returns the reason if that is impossible."""
    if os.environ.get(LEVEL_VARIABLE) == "none":
        return KernelsMissing(f"{LEVEL_VARIABLE} is none")
    try:
        import ouzel_kernels  # noqa: PLC0415 - optional
    except ImportError:
        return KernelsMissing("the package ouzel-kernels is not installed")
    if ouzel_kernels.LIBRARY is None:
        return KernelsMissing(ouzel_kernels.REASON)
    missing = sorted(_NEEDED_FLAGS - processor_flags())
    if missing:
        return KernelsMissing(f"this processor lacks {', '.join(missing)}")
    if not ov.__version__.startswith(f"{ouzel_kernels.OPENVINO}-"):
        return KernelsMissing(
            f"ouzel-kernels is made for openvino {ouzel_kernels.OPENVINO}, given {ov.__version__}"
        )
    return _load(ouzel_kernels.LIBRARY)


def _load(path: Path) -> Kernels | KernelsMissing:
    try:
        factory = load_operations(path)
        level = _read_level(path)
    except (OSError, RuntimeError) as error:
        return KernelsMissing(f"{path.name} cannot be loaded: {str(error).splitlines()[0]}")
    if not level:
        return KernelsMissing(
            f"{LEVEL_VARIABLE} names instructions that this processor lacks, given "
            f"{os.environ.get(LEVEL_VARIABLE)!r}"
        )
    return Kernels(path, level, factory)


def _read_level(path: Path) -> str:
    function = ctypes.CDLL(str(path)).ouzel_kernels_level
    function.restype = ctypes.c_char_p
    level: bytes = function()
    return level.decode()


def make_operation(
    name: str, inputs: Sequence[Node], attributes: Mapping[str, object] | None = None
) -> Node:
    """Makes an operation of the kernels; only graphs for kernels that were found have any."""
    kernels = find_kernels()
    assert isinstance(kernels, Kernels), "only kernels that were found make operations"
    return kernels.factory.create(name, list(inputs), dict(attributes or {}))


def can_use_kernels(engine: EngineConfig) -> bool:
    """Tells whether the options allow the kernels.

    The kernels quantise activations, so a user who names f32, bf16 or f16 does without them.
    """
    return engine.device == "CPU" and engine.precision in ("auto", "int8")


def uses_kernels(engine: EngineConfig) -> bool:
    """Tells whether matrices of integers are packed and multiplied by the kernels."""
    return can_use_kernels(engine) and isinstance(find_kernels(), Kernels)


def describe_kernels() -> str:
    """Describes the kernels, or the reason why there are none, for people."""
    found = find_kernels()
    return found.level if isinstance(found, Kernels) else f"none: {found.reason}"
