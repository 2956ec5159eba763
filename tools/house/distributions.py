"""Builds the sdists and the wheels, and checks that they are fit for the packages' index.

    uv run python -m tools.house.distributions [DIRECTORY]

DIRECTORY is `dist` by default, and is emptied first. It gets the files of `ouzel` and of
`ouzel-kernels`. Each sdist is unpacked and built once more: both files must have the same bytes as
the first ones. So the wheel comes out of the sdist alone, and neither the place nor the time of a
build changes a byte. twine checks that the index can show each README.md as the package's page. The
program prints the files, and exits with 1 and a sentence for each fault.

The wheel of `ouzel-kernels` has the tag of this machine, which the index refuses: release.yml
makes a wheel for the index with auditwheel.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.house.release import exit_with

ROOT = Path(__file__).parents[2]
PROJECTS = (ROOT, ROOT / "kernels")
MAX_SDIST_BYTES = 12_000_000
_NOT_IN_SDIST = ("tests", "benchmarks", "training", "tools", "docs")


def build(project: Path, directory: Path) -> dict[str, bytes]:
    """Builds the project's sdist, and its wheel from the sdist; returns name -> SHA-256.

    The directory is empty before.
    """
    command = ["uv", "build", "--quiet", "--out-dir", str(directory), str(project)]
    subprocess.run(command, check=True)
    files = sorted([*directory.glob("*.tar.gz"), *directory.glob("*.whl")])
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in files}


def find_faults(directory: Path) -> list[str]:
    """Builds into the directory, and returns a sentence for each fault of the files."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    faults = []
    for project in PROJECTS:
        with TemporaryDirectory(prefix="ouzel-dist-") as scratch:
            faults += project_faults(project, Path(scratch))
            for path in Path(scratch).glob("ouzel*"):
                shutil.copy(path, directory)
    twine = ["uv", "tool", "run", "twine", "check", "--strict", *map(str, directory.glob("ouzel*"))]
    checked = subprocess.run(twine, capture_output=True, text=True, check=False)
    if checked.returncode:
        faults.append(f"twine refuses the files: {checked.stdout}{checked.stderr}".strip())
    return faults


def project_faults(project: Path, directory: Path) -> list[str]:
    """Builds a project's two files twice; returns the faults of the sdist and of the builds."""
    first = build(project, directory)
    [sdist] = directory.glob("*.tar.gz")
    faults = sdist_faults(sdist)
    if any(name.startswith("ouzel_kernels") and name.endswith("-any.whl") for name in first):
        faults.append("the wheel of ouzel-kernels has no library: it needs a C++ compiler")
    with TemporaryDirectory(prefix="ouzel-sdist-") as scratch:
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        [unpacked] = Path(scratch).iterdir()
        second = build(unpacked, Path(scratch) / "again")
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            faults.append(f"{name}: a second build, of the unpacked sdist, has other bytes")
    return faults


def sdist_faults(sdist: Path) -> list[str]:
    """Returns a sentence for each fault of the sdist's size and content."""
    faults = []
    if (size := sdist.stat().st_size) > MAX_SDIST_BYTES:
        faults.append(f"{sdist.name} must have at most {MAX_SDIST_BYTES} bytes, given {size}")
    with tarfile.open(sdist) as archive:
        parts = {Path(name).parts[1] for name in archive.getnames()}
    faults += [f"{sdist.name} must not contain {name}/" for name in _NOT_IN_SDIST if name in parts]
    return faults


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    faults = find_faults(directory)
    for path in sorted(directory.glob("ouzel*")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.name}: {path.stat().st_size:,} bytes, sha256 {digest}")
    exit_with(faults)


if __name__ == "__main__":
    main()
