"""Writes a program that answers as the command espeak-ng does, with phonemes of a few lines."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

PROGRAM = """#!{python}
import json, sys
answers = json.loads({answers!r})
for line in sys.stdin.read().splitlines():
    print(answers.get(line, ""))
"""


def write_espeak(folder: Path, answers: Mapping[str, str]) -> Path:
    """Writes the program espeak-ng into a folder; each line of text has its answer."""
    return write_program(
        folder, PROGRAM.format(python=sys.executable, answers=json.dumps(dict(answers)))
    )


def write_program(folder: Path, text: str) -> Path:
    path = folder / "espeak-ng"
    path.write_text(text)
    path.chmod(0o755)
    return path
