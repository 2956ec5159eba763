"""`tools/house/distributions.py` checks a release's files; `try_wheel.py` serves from a wheel."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tools.house.distributions import MAX_SDIST_BYTES, find_faults, sdist_faults


def write_sdist(directory: Path, name: str, size: int) -> Path:
    """Writes an sdist of one file, without compression."""
    content, sdist = directory / "content", directory / "ouzel-1.0.0.tar.gz"
    content.write_bytes(bytes(size))
    with tarfile.open(sdist, "w") as archive:
        archive.add(content, f"ouzel-1.0.0/{name}")
    return sdist


def test_a_small_sdist_of_the_source_has_no_fault(tmp_path: Path) -> None:
    assert sdist_faults(write_sdist(tmp_path, "src/ouzel/__init__.py", 100)) == []


def test_an_sdist_with_tests_is_refused(tmp_path: Path) -> None:
    [fault] = sdist_faults(write_sdist(tmp_path, "tests/test_all.py", 100))

    assert fault == "ouzel-1.0.0.tar.gz must not contain tests/"


def test_a_large_sdist_is_refused(tmp_path: Path) -> None:
    [fault] = sdist_faults(write_sdist(tmp_path, "src/ouzel/weights", MAX_SDIST_BYTES))

    assert f"must have at most {MAX_SDIST_BYTES} bytes, given" in fault


@pytest.mark.serves
@pytest.mark.release("the sdists and the wheels, built twice, and a server out of the wheels")
def test_the_distributions_are_fit_for_a_release(tmp_path: Path) -> None:
    assert find_faults(tmp_path / "dist") == []

    [wheel] = (tmp_path / "dist").glob("ouzel-*.whl")
    command = [sys.executable, "-m", "tools.house.try_wheel", str(wheel)]
    tried = subprocess.run(
        [*command, "--python", sys.executable], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stderr
    assert "MiB installed" in tried.stdout
