"""Reads the instruction set extensions of the processor, on Linux."""

from pathlib import Path

_NAMES = ("flags", "Features")  # the key in /proc/cpuinfo on x86 and on ARM


def instructions() -> str:
    """Returns the line with the extensions, or an empty text if the system has none."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next((line for line in file if line.startswith(_NAMES)), "")
    except OSError:
        return ""


def processor_flags() -> frozenset[str]:
    """Returns the names of the processor's extensions, such as `avx512_vnni`."""
    return frozenset(instructions().partition(":")[2].split())
