"""Runs the programs of docs/how-to/speech.md against a server."""

import re
import subprocess
import sys
from pathlib import Path

from ouzel.audio.writing.formats import FileFormat
from tests.api.speaking.humming import humming_server
from tests.api.speaking.posting import TEXT, assert_hums_text
from tests.audio.writing.decoding import decode_file
from tests.documents.examples import BLOCKS

TEXTS = re.compile(r"The sea was calm that evening\.( No wind moved the sails\.)?")
PLAYER = '"ffplay", "-v", "error", "-nodisp", "-autoexit", "-"'
FILES: dict[str, FileFormat] = {"speech.mp3": "mp3", "played.flac": "flac"}
PROGRAMS = [
    block
    for block in BLOCKS
    if block.document == "docs/how-to/speech.md" and block.language == "python"
]


def test_the_programs_write_and_play_the_sound(tmp_path: Path) -> None:
    """The player is FFmpeg, which writes the sound to a file."""
    writing, playing = PROGRAMS
    with humming_server(names=("Kokoro-82M",)) as humming:
        _run(writing.text, humming.url, tmp_path)
        _run(playing.text, humming.url, tmp_path)
    for name, format_ in FILES.items():
        assert_hums_text(decode_file((tmp_path / name).read_bytes(), format_))


def _run(program: str, url: str, directory: Path) -> None:
    code = TEXTS.sub(TEXT, program).replace("af_heart", "alloy")
    code = code.replace("http://127.0.0.1:8000", url)
    code = code.replace(PLAYER, '"ffmpeg", "-v", "error", "-i", "-", "played.flac"')
    assert TEXT in code and "alloy" in code and url in code and "ffplay" not in code
    subprocess.run([sys.executable, "-c", code], cwd=directory, check=True)
