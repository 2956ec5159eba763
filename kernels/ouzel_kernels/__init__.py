"""The library with Ouzel's operations for OpenVINO's CPU plugin."""

from pathlib import Path

_PATH = Path(__file__).with_name("libouzel_kernels.so")

# None: the package was installed without a C++ compiler, or the compiler failed
LIBRARY: Path | None = _PATH if _PATH.is_file() else None
REASON = (
    "" if LIBRARY else "ouzel-kernels was installed where no C++ compiler could build its library"
)
OPENVINO = ""  # the version of openvino that the library works with
if LIBRARY:
    from ouzel_kernels._built import OPENVINO  # noqa: F401
