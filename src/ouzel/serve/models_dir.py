"""Finds the models in the directory of `--models-dir`."""

import os
from pathlib import Path

from ouzel.gguf.files import is_gguf, is_projector, model_name
from ouzel.kokoro_files.files import ONNX_SUFFIX, find_kokoro
from ouzel.model_store.model_directory import IR_FILES

_MAX_DEPTH = 2  # DIR/model, and DIR/owner/model as in the hub's names


def list_models(directory: str) -> dict[str, Path]:
    """Returns the paths of the models by their names, in the order of the names.

    A directory that is gone has no models. Raises OSError if the directory cannot be read.

    A subdirectory with config.json, an OpenVINO IR or a Kokoro model is a model; its name is its
    path below the directory. Every other GGUF file is a model; its name is its path without the
    suffix, and without the number of a file of several.
    """
    root = Path(directory).expanduser()
    if root.exists():
        os.scandir(root).close()
    found: dict[str, Path] = {}
    _search(root, "", found, _MAX_DEPTH)
    return dict(sorted(found.items()))


def _search(directory: Path, prefix: str, found: dict[str, Path], depth: int) -> None:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:  # the directory is gone, or may not be read: it holds nothing now
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if _holds_model(path):
                found[prefix + entry.name] = path
            elif depth > 1:
                _search(path, f"{prefix}{entry.name}/", found, depth - 1)
        elif is_gguf(path) and not is_projector(path):
            found.setdefault(prefix + model_name(path), path)


def _holds_model(directory: Path) -> bool:
    if any((directory / name).is_file() for name in ("config.json", *IR_FILES)):
        return True
    return any(directory.glob(f"*{ONNX_SUFFIX}")) and find_kokoro(directory) is not None
