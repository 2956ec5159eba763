"""`ouzel` and `ouzel-kernels` have the same version, and the same version of OpenVINO."""

import tomllib
from pathlib import Path
from typing import Any

from ouzel import __version__

ROOT = Path(__file__).parents[2]
KERNELS = tomllib.loads((ROOT / "kernels" / "pyproject.toml").read_text())
OUZEL = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())


def requirement(requirements: list[str], name: str) -> str:
    """Returns the version that the only requirement of this name has."""
    [found] = [text for text in requirements if text.startswith(f"{name}==")]
    return found.removeprefix(f"{name}==").partition(";")[0].strip()


def locked(name: str) -> dict[str, Any]:  # an entry of uv.lock, which has no types
    [found] = [package for package in LOCK["package"] if package["name"] == name]
    return dict(found)


def test_the_version_of_the_kernels_is_the_version_of_ouzel() -> None:
    assert KERNELS["project"]["version"] == __version__
    assert requirement(OUZEL["project"]["dependencies"], "ouzel-kernels") == __version__
    assert locked("ouzel-kernels")["version"] == __version__


def test_the_kernels_are_compiled_against_the_locked_openvino() -> None:
    openvino = locked("openvino")["version"]

    assert requirement(KERNELS["build-system"]["requires"], "openvino") == openvino
    assert requirement(KERNELS["project"]["dependencies"], "openvino") == openvino
