"""Runs the programs of docs/how-to/transcriptions.md against a server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.speech.listening import ListeningServer, listening_server
from tests.api.speech.posting import WORDS
from tests.documents.examples import BLOCKS
from tests.documents.markdown import Block

PROGRAMS = [
    block
    for block in BLOCKS
    if block.document == "docs/how-to/transcriptions.md"
    and block.language == "python"
    and "realtime" not in block.text  # tests/api/realtime runs it
]
OUTPUTS = [
    "one two three\n",
    "0.0 0.9 one\n1.0 1.9 two\n2.0 2.9 three\n",
    "one two three",
]


@pytest.fixture(scope="module")
def listening() -> Iterator[ListeningServer]:
    with listening_server(names=("whisper-small",)) as listening:
        yield listening


@pytest.mark.parametrize(("program", "output"), list(zip(PROGRAMS, OUTPUTS, strict=True)))
def test_a_program_prints_the_speech(
    listening: ListeningServer, program: Block, output: str, tmp_path: Path
) -> None:
    (tmp_path / "speech.wav").write_bytes(WORDS)
    code = program.text.replace("http://127.0.0.1:8000", listening.url)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == output
