"""Runs `ouzel chat` in a pipe, as a process of its own."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from tests.serve.forks import start_command


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
    with start_command(
        ("chat", *arguments), own | dict(environment or {}), stdin=subprocess.PIPE, is_text=False
    ) as process:
        output, errors = process.communicate(text.encode() if isinstance(text, str) else text)
    assert b"Traceback" not in errors, errors.decode()
    return Ended(process.returncode, output.decode(), errors.decode())
