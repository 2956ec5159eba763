"""Tells Whisper models of CTranslate2 and whisper.cpp by the first bytes of their files."""

import struct
from pathlib import Path

from ouzel.errors import ModelLoadError

CTRANSLATE2_FILE = "model.bin"
SPECIFICATION = "WhisperSpec"  # CTranslate2's name of the kind of model
GGML_MAGIC = 0x67676D6C
_SUFFIX = ".bin"


def is_ctranslate2(path: Path) -> bool:
    """Tells whether a file begins as a Whisper model of CTranslate2 does."""
    start = (len(SPECIFICATION) + 1).to_bytes(2, "little") + SPECIFICATION.encode() + b"\0"
    try:
        with path.open("rb") as file:
            return file.read(4 + len(start))[4:] == start
    except OSError:
        return False


def is_ggml(path: Path) -> bool:
    """Tells whether a file begins as whisper.cpp's GGML files do."""
    try:
        with path.open("rb") as file:
            return file.read(4) == struct.pack("<I", GGML_MAGIC)
    except OSError:
        return False


def find_whisper_file(path: Path) -> Path | None:
    """Returns the file of the model: the path itself, or the only one in the directory.

    Returns None if there is none. Raises ModelLoadError if a directory has several.
    """
    if not path.is_dir():
        return path if is_ggml(path) or is_ctranslate2(path) else None
    if is_ctranslate2(path / CTRANSLATE2_FILE):
        return path / CTRANSLATE2_FILE
    files = [each for each in sorted(path.glob(f"*{_SUFFIX}")) if is_ggml(each)]
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:16])
        raise ModelLoadError(
            f"{path} has {len(files)} GGML models: {names}; give the file of one of them"
        )
    return files[0] if files else None


def name_whisper_file(file: Path) -> str:
    """Returns the model's name: CTranslate2's file has the same name in each directory."""
    return file.absolute().parent.name if file.name == CTRANSLATE2_FILE else file.stem
