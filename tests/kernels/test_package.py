"""`ouzel_kernels` names its library, or says why it has none."""

import ctypes
import importlib.util
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

ouzel_kernels = pytest.importorskip(
    "ouzel_kernels", reason="ouzel-kernels is for Linux on x86-64 only"
)


def test_the_library_has_a_level_for_this_processor() -> None:
    if ouzel_kernels.LIBRARY is None:
        pytest.skip(f"the package has no library: {ouzel_kernels.REASON}")
    library = ctypes.CDLL(str(ouzel_kernels.LIBRARY))
    library.ouzel_kernels_level.restype = ctypes.c_char_p

    assert library.ouzel_kernels_level().decode() in (
        "amx",
        "avx512_vnni",
        "avx_vnni",
        "avx2",
        "emulated_amx",
    )
    assert library.ouzel_kernels_supports(b"avx2") == 1
    assert library.ouzel_kernels_supports(b"sse2") == 0


def test_the_library_is_compiled_against_the_installed_openvino() -> None:
    if ouzel_kernels.LIBRARY is None:
        pytest.skip(f"the package has no library: {ouzel_kernels.REASON}")

    assert version("openvino") == ouzel_kernels.OPENVINO
    assert ouzel_kernels.REASON == ""


def load_without_library(directory: Path) -> ModuleType:
    """Loads a copy of the package's only module, beside which no library lies."""
    copy = directory / "__init__.py"
    copy.write_bytes(Path(ouzel_kernels.__file__).read_bytes())
    spec = importlib.util.spec_from_file_location("kernels_without_library", copy)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_package_without_library_gives_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    package = load_without_library(tmp_path)

    assert package.LIBRARY is None and package.OPENVINO is None
    assert "no C++ compiler" in package.REASON


def test_a_package_for_another_processor_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")

    assert load_without_library(tmp_path).REASON.endswith("aarch64")
