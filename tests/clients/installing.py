"""Installs packages of real clients, each set in a directory of its own outside the repository.

A set is a directory of `packages/`. Its file is a complete list of requirements with versions, or
npm's package.json with its lock; a package.json without a lock pins only the client itself. An
installed set stays for later runs; its directory may be deleted at any time. `python -m
tests.clients.installing SET...` installs these sets, or all.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).parent / "packages"
SETS = sorted(path.name for path in PACKAGES.iterdir())
DIRECTORY_VARIABLE = "OUZEL_TESTS_CLIENTS_DIR"
NPM_OPTIONS = (
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
)
MAX_S = 300  # limit for one set: some networks drop packets without an error


class NotInstalledError(Exception):
    pass


def root() -> Path:
    kept = os.environ.get(DIRECTORY_VARIABLE)
    return Path(kept) if kept else Path.home() / ".cache" / "ouzel-tests" / "clients"


@cache
def installed(name: str) -> Path | NotInstalledError:
    """Returns the directory of a set, and installs the set first if it is missing.

    Several processes may call this at once.
    """
    manifests = sorted((PACKAGES / name).iterdir())
    pins = hashlib.sha256(
        b"".join(path.read_bytes() for path in manifests) + sys.version.encode()
    ).hexdigest()[:12]
    directory = root() / f"{name}-{pins}"
    complete = directory / ".complete"
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        try:
            if (PACKAGES / name / "package.json").exists():
                _install_with_npm(manifests, directory)
            else:
                _install_with_uv(PACKAGES / name / "requirements.txt", directory)
        except NotInstalledError as error:
            return error
        complete.touch()
    return directory


def _install_with_npm(manifests: Sequence[Path], directory: Path) -> None:
    npm = _program("npm")
    _program("node")
    directory.mkdir()
    for manifest in manifests:
        shutil.copy(manifest, directory)
    command = "ci" if (directory / "package-lock.json").exists() else "install"
    _run(npm, command, "--prefix", str(directory), *NPM_OPTIONS)


def _install_with_uv(requirements: Path, directory: Path) -> None:
    uv = os.environ.get("UV") or _program("uv")
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(directory))
    # Dependencies outside the list are not installed: Open WebUI starts without torch.
    options = ("--quiet", "--no-deps", "--python", str(directory))
    _run(uv, "pip", "install", *options, "--requirements", str(requirements))


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NotInstalledError(f"there is no {name}")
    return path


def _run(*command: str) -> None:
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_S,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"{Path(command[0]).name} took more than {MAX_S} s") from error
    if result.returncode:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()
        raise NotInstalledError(f"{Path(command[0]).name} failed: {' '.join(said[:3])}")


def main(names: Sequence[str]) -> int:
    missing = 0
    for name in names or SETS:
        outcome = installed(name)
        missing += isinstance(outcome, NotInstalledError)
        sys.stdout.write(f"{name}: {outcome}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
