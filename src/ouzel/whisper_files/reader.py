"""Reads the tensors of a Whisper model from either kind of file."""

from pathlib import Path

from ouzel.whisper_files.ctranslate2_file import read_ctranslate2
from ouzel.whisper_files.ctranslate2_names import rename_ctranslate2
from ouzel.whisper_files.files import is_ggml
from ouzel.whisper_files.ggml_file import read_ggml
from ouzel.whisper_files.ggml_names import rename_ggml
from ouzel.whisper_files.stored_tensor import StoredTensor


def read_tensors(path: Path) -> dict[str, StoredTensor]:
    """Returns the tensors of a file by transformers' names. Raises ModelLoadError."""
    if is_ggml(path):
        return rename_ggml(read_ggml(path).tensors)
    return rename_ctranslate2(read_ctranslate2(path).tensors)
