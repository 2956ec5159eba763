"""Runs the program of docs/how-to/speech.md against a server."""

import subprocess
import sys
from pathlib import Path

from tests.api.speaking.humming import humming_server
from tests.api.speaking.posting import TEXT, assert_hums_text
from tests.audio.writing.decoding import decode_file
from tests.documents.examples import BLOCKS

PROGRAMS = [
    block
    for block in BLOCKS
    if block.document == "docs/how-to/speech.md" and block.language == "python"
]


def test_the_program_writes_a_file(tmp_path: Path) -> None:
    [program] = PROGRAMS
    code = program.text.replace("The sea was calm that evening.", TEXT).replace("af_heart", "alloy")
    assert TEXT in code and "alloy" in code
    with humming_server(names=("Kokoro-82M",)) as humming:
        code = code.replace("http://127.0.0.1:8000", humming.url)
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert_hums_text(decode_file((tmp_path / "speech.mp3").read_bytes(), "mp3"))
