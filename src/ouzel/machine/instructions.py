"""Linux tells which instructions the processor has."""

from pathlib import Path

_NAMES = ("flags", "Features")  # of the line on x86 and on ARM


def instructions() -> str:
    """Returns the line of the processor's extensions, empty where the system does not tell them."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next((line for line in file if line.startswith(_NAMES)), "")
    except OSError:
        return ""


def processor_flags() -> frozenset[str]:
    """Returns the names of the processor's extensions, such as `avx512_vnni`."""
    return frozenset(instructions().partition(":")[2].split())
