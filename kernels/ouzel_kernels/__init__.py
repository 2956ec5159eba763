"""The package names the library of kernels, or the reason why there is none."""

import platform
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_FILE = _FOLDER / "libouzel_kernels.so"


def _find_reason() -> str:
    if _FILE.is_file():
        return ""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        system = f"{platform.system()} on {platform.machine()}"
        return f"ouzel-kernels is for Linux on x86_64, given {system}"
    return (
        "ouzel-kernels could not compile its library when it was installed: there was no C++ "
        "compiler (GCC 11, Clang 12 or newer), or the compilation failed. Install a compiler and "
        "then ouzel-kernels again, without a cache: `uv sync --reinstall-package ouzel-kernels`"
    )


# The library, if it was compiled.
LIBRARY: Path | None = _FILE if _FILE.is_file() else None
# The version of openvino that the library was compiled against: it loads with no other one.
OPENVINO: str | None = (_FOLDER / "openvino_version").read_text().strip() if LIBRARY else None
# Why there is no library; empty if there is one.
REASON: str = _find_reason()
