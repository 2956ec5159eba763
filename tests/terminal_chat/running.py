"""Runs `ouzel chat` in a pipe, as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    status: int
    output: str
    errors: str


def piped(
    *arguments: str, text: str | bytes = b"", environment: Mapping[str, str] | None = None
) -> Ended:
    """Runs the command with `text` as its standard input; no stream is a terminal."""
    own = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    process = subprocess.run(
        [sys.executable, "-m", "ouzel", "chat", *arguments],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        env=own | dict(environment or {}),
        check=False,
    )
    assert b"Traceback" not in process.stderr, process.stderr.decode()
    return Ended(process.returncode, process.stdout.decode(), process.stderr.decode())
