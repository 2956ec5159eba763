"""Finds the file of a Whisper model, and reads its tensors."""

from pathlib import Path

from ouzel.errors import ModelLoadError
from ouzel.whisper_files.ctranslate2_file import is_ctranslate2, read_ctranslate2
from ouzel.whisper_files.ctranslate2_names import rename_ctranslate2
from ouzel.whisper_files.ggml_file import is_ggml, read_ggml
from ouzel.whisper_files.ggml_names import rename_ggml
from ouzel.whisper_files.stored_tensor import StoredTensor

CTRANSLATE2_FILE = "model.bin"
_SUFFIX = ".bin"


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


def read_tensors(path: Path) -> dict[str, StoredTensor]:
    """Returns the tensors of a file by transformers' names. Raises ModelLoadError."""
    if is_ggml(path):
        return rename_ggml(read_ggml(path).tensors)
    return rename_ctranslate2(read_ctranslate2(path).tensors)
