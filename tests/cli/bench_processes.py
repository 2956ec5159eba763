"""Starts `ouzel bench` in a process of its own."""

import subprocess
import sys
from pathlib import Path


def start_bench(
    *arguments: str, directory: Path, wrapper: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Starts the command in its own process; it saves its result in the directory."""
    command = [
        *wrapper,
        sys.executable,
        "-m",
        "ouzel",
        "bench",
        "--save",
        str(directory / "result.json"),
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
