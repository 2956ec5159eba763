"""Makes a model directory from a Kokoro model: links to its graph and its voices, and the small
files of a Hugging Face repository.

The directory is stored and reused. It is made again if a file has another path, size or time of
change, or if FORMAT has changed.
"""

import hashlib
import logging
from pathlib import Path

from ouzel.checkpoint.made_directory import mark_used, matches_source, store_directory
from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.files import IR_FILE, KokoroFiles, find_kokoro
from ouzel.kokoro_files.vocabulary import MAX_PHONEMES, make_tokenizer, read_vocabulary

logger = logging.getLogger(__name__)

FORMAT = 1  # increase it when other files are made from the same model
MODEL_TYPE = "kokoro"
ONNX_FILE = "model.onnx"
_ARCHIVE, _VOICES = "voices.npz", "voices"


def make_kokoro_directory(path: Path, cache_root: Path) -> Path:
    """Returns the directory for a model directory, or for an ONNX file. Raises ModelLoadError."""
    found = find_kokoro(path.absolute())
    if found is None:
        raise ModelLoadError(f"{path} has no Kokoro model: an ONNX file or an IR, and voices")
    source = describe(list(found.all))
    digest = hashlib.sha256(str(found.graph).encode()).hexdigest()[:16]
    directory = cache_root / f"{name_kokoro(path)[:64]}-kokoro-{digest}"
    if matches_source(directory, source):
        mark_used(directory)
        return directory
    vocabulary = read_vocabulary(found.root)
    contents = {
        "config.json": _make_config(vocabulary),
        "tokenizer.json": make_tokenizer(vocabulary),
    }
    try:
        store_directory(directory, contents, _list_links(found), source)
    except OSError as error:
        raise ModelLoadError(
            f"{path}: its small files cannot be stored in {cache_root} (--cache-dir): {error}"
        ) from error
    logger.info("tokenizer and configuration of %s are in %s", path, directory)
    return directory


def name_kokoro(path: Path) -> str:
    """Returns the model's name: of the directory, or of the ONNX file."""
    return path.resolve().name if path.is_dir() else path.stem


def describe(files: list[Path]) -> JsonObject:
    facts = [(file, file.stat()) for file in files]
    return {
        "format": FORMAT,
        "files": [[str(file), each.st_size, each.st_mtime_ns] for file, each in facts],
    }


def _make_config(vocabulary: dict[str, int]) -> JsonObject:
    return {
        "model_type": MODEL_TYPE,
        "vocab_size": max(vocabulary.values()) + 1,
        "max_position_embeddings": MAX_PHONEMES,
    }


def _list_links(found: KokoroFiles) -> dict[str, Path]:
    links = {IR_FILE if found.is_ir else ONNX_FILE: found.graph}
    # an ONNX file names the file with its weights
    links |= {part.name: part for part in found.graph_parts}
    if found.archive is not None:
        return links | {_ARCHIVE: found.archive}
    return links | {_VOICES: found.voices[0].parent}
