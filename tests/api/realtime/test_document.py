"""Runs the program of docs/how-to/transcriptions.md that sends sound while it arrives."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.api.realtime.speaking import live_server, make_silence, make_tone
from tests.documents.examples import BLOCKS


def test_the_program_prints_the_speech(tmp_path: Path) -> None:
    [program] = [
        block.text
        for block in BLOCKS
        if block.document == "docs/how-to/transcriptions.md"
        and block.language == "python"
        and "realtime" in block.text
    ]
    sound = np.concatenate([make_silence(0.5), make_tone(1)])
    (tmp_path / "speech.pcm").write_bytes((sound * 32767).astype("<i2").tobytes())
    with live_server() as (listening, _):
        code = program.replace("http://127.0.0.1:8000", listening.url)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "one two\n"
