"""Reads the name of a model of the hub, and tells whether the hub's cache holds the whole model.

The module answers without the network and without the hub's library. It does not see whether the
hub has a newer revision.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from ouzel.checkpoint.weight_files import WEIGHT_FILES
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import find_gguf, is_gguf, model_name
from ouzel.kokoro_files.files import find_kokoro, is_declared
from ouzel.model_store.hub_cache import PREFIX, cache_directory, gguf_models, snapshots
from ouzel.model_store.model_directory import is_ir, is_name_of_hub


@dataclass(frozen=True, slots=True)
class HubReference:
    repo_id: str
    gguf: str = ""  # a quantisation or the name of a file; empty for the whole repository

    @property
    def folder_name(self) -> str:
        return PREFIX + self.repo_id.replace("/", "--")

    def find_gguf_files(self, snapshot: Path) -> list[Path]:
        """Returns the files of the GGUF model in a snapshot's directory; [] if one is missing."""
        for name, first in gguf_models(snapshot).items():
            if self._names(first.relative_to(snapshot), name):
                try:
                    files = find_gguf(first)
                except ModelLoadError:  # a part of a split model is missing
                    return []
                return files if all(file.is_file() for file in files) else []
        return []

    def _names(self, first: Path, name: str) -> bool:
        if is_gguf(Path(self.gguf)):
            return model_name(Path(self.gguf)) == name and first.parent == Path(self.gguf).parent
        # the rule of a download: Q4_K_XL names a file that ends with -UD-Q4_K_XL too
        end, wanted = name.lower(), self.gguf.lower()
        return end == wanted or end.endswith(tuple(f"{mark}{wanted}" for mark in "-._"))


def read_reference(name: str) -> HubReference | None:
    """Returns None for a name that is not `owner/name`, `owner/name:Q4_K_M` or with a file."""
    if not is_name_of_hub(name):
        return None
    repo_id, _, gguf = name.partition(":")
    return HubReference(repo_id, gguf)


def is_on_disk(name: str) -> bool:
    """Tells whether the hub's cache holds all files of the model that its newest revision needs."""
    reference = read_reference(name)
    if reference is None:
        return False
    path = cache_directory() / reference.folder_name
    try:
        # A download names the revision in `refs` after the last file has come.
        named = [each for each in snapshots(path) if each.names]
        if reference.gguf:
            return any(reference.find_gguf_files(each.directory) for each in named)
        return any(has_all_weights(each.directory) for each in named)
    except (OSError, ValueError):  # a name that is too long, or has a null byte
        return False


def has_all_weights(directory: Path) -> bool:
    """Tells whether a snapshot has config.json and all files of its weights, or a whole IR.

    A Kokoro model needs its voices, too.
    """
    if _is_kokoro(directory):
        return _has_kokoro(directory)
    if is_ir(directory):
        return all(path.with_suffix(".bin").is_file() for path in directory.glob("openvino_*.xml"))
    if not (directory / "config.json").is_file():
        return False
    first = next((name for name in WEIGHT_FILES if (directory / name).is_file()), None)
    if first is None:
        return any(path.is_file() for path in directory.glob("*.safetensors"))
    return _has_listed_files(directory / first)


def _has_listed_files(index: Path) -> bool:
    """Tells whether the files of an index are beside it; a file that is no index is whole."""
    if index.suffix != ".json":
        return True
    try:
        names = set(json.loads(index.read_bytes())["weight_map"].values())
        return all(index.with_name(name).is_file() for name in names)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_kokoro(directory: Path) -> bool:
    try:
        return is_declared(directory)
    except ModelLoadError:  # a broken config.json, which the loader of the model reports
        return False


def _has_kokoro(directory: Path) -> bool:
    try:
        return find_kokoro(directory) is not None
    except ModelLoadError:  # the weights of PyTorch only
        return False
