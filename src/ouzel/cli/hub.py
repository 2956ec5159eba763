"""This is imported only when a model of the Hugging Face hub is named: its library takes a quarter of a second."""

import fnmatch
from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import HfApi

from ouzel.cli.progress import progress_shown
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import PROJECTOR, find_gguf, model_name, quantisation_of
from ouzel.model_store.download import fetch
from ouzel.model_store.failures import FAILURES, reason_of
from ouzel.model_store.hub_session import bounded_answers

_FILES = ["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "openvino_*.xml", "openvino_*.bin"]
_WEIGHTS = ("*.safetensors", "openvino_*.xml")


def download(repo_id: str) -> Path:
    """Returns the model's directory in the hub's cache. Raises ModelLoadError."""
    directory = _snapshot(repo_id, _FILES)
    has_weights = any(path for pattern in _WEIGHTS for path in directory.glob(pattern))
    if not has_weights and (there := _quantisations(repo_id)):
        raise ModelLoadError(f"{repo_id} has GGUF files; give one as {repo_id}:NAME, of {', '.join(there)}")
    return directory


def download_gguf(repo_id: str, quantisation: str) -> Path:
    """Returns the GGUF file whose name ends with that of the quantisation, the first where it is split.

    Files beside it are not fetched. Raises ModelLoadError.
    """
    spellings = dict.fromkeys((quantisation, quantisation.upper(), quantisation.lower()))
    names = [f"{start}{name}" for name in spellings for start in ("", "*[-._/]")]
    patterns = [name + end for name in names for end in (".gguf", "-?????-of-?????.gguf")]
    directory = _snapshot(repo_id, patterns)
    fetched = sorted(path for path in directory.rglob("*.gguf") if _is_model(path.relative_to(directory), patterns))
    models = {(path.parent, model_name(path)): path for path in fetched}
    if not models:
        there = ", ".join(_quantisations(repo_id)) or "none"
        raise ModelLoadError(f"{repo_id} has no GGUF file of {quantisation}; there are: {there}")
    if len(models) > 1:
        names = [str(path.relative_to(directory)) for path in models.values()]
        raise ModelLoadError(f"{repo_id} has several GGUF files of {quantisation}: {', '.join(names)}")
    return find_gguf(*models.values())[0]


def _is_model(path: Path, patterns: Iterable[str]) -> bool:
    is_wanted = any(fnmatch.fnmatchcase(path.as_posix(), pattern) for pattern in patterns)
    return is_wanted and PROJECTOR not in path.name


def _snapshot(repo_id: str, patterns: list[str]) -> Path:
    try:
        with progress_shown():
            return fetch(repo_id, patterns, [f"*{PROJECTOR}*"])
    except FAILURES as error:
        raise ModelLoadError(
            f"there is no directory {repo_id}, and it could not be fetched from the Hugging Face hub: "
            f"{reason_of(error, repo_id)}"
        ) from error


def _quantisations(repo_id: str) -> list[str]:
    """Returns the names by which GGUF files of the repository can be asked for; none where it is out of reach."""
    try:
        with bounded_answers():
            files = [Path(name) for name in HfApi().list_repo_files(repo_id) if name.lower().endswith(".gguf")]
    except FAILURES:
        return []
    names = (quantisation_of(model_name(path)) for path in files if PROJECTOR not in path.name)
    return sorted(set(filter(None, names)))
