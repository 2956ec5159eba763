"""Downloads models from the hub: whole repositories, or single GGUF files.

The module is imported only when MODEL names a repository: the hub library takes 0.25 s to import.
"""

import fnmatch
import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from huggingface_hub import HfApi, constants

from ouzel.checkpoint.weight_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import (
    CHAT_TEMPLATE,
    PROJECTOR,
    find_gguf,
    is_gguf,
    is_projector,
    model_name,
    order_projectors,
    read_quantisation,
)
from ouzel.kokoro_files.files import find_kokoro, is_declared
from ouzel.model_store.download import fetch
from ouzel.model_store.failures import FAILURES, explain_failure, is_unreachable
from ouzel.model_store.hub_session import bounded_answers
from ouzel.terminal.progress import progress_shown

MODEL_FILES = [
    "*.json",
    "*.jinja",
    "*.txt",
    "*.model",
    "*.safetensors",
    "openvino_*.xml",
    "openvino_*.bin",
    "[0-9]_*/pytorch_model.bin",  # Dense modules of sentence-transformers
    "*_linear.pt",  # the heads of bge-m3
    "artifact.metadata",  # ColBERT's lengths and markers
]
TORCH_WEIGHTS = ["pytorch_model*.bin"]  # only for repositories without safetensors
# of several ONNX files only the one with the weights in f32
KOKORO_FILES = ["onnx/model.onnx", "onnx/model.onnx_data", "voices/*.bin"]
ADAPTER_FILES = [ADAPTER_CONFIG, ADAPTER_WEIGHTS]
_WEIGHTS = ("*.safetensors", "openvino_*.xml")
_MAIN = constants.DEFAULT_REVISION


class HubUnreachable(ModelLoadError):
    """The hub is out of reach, and its cache does not have the model."""


def download(repo_id: str, branch: str = _MAIN) -> Path:
    """Downloads a model and returns its directory in the hub's cache. Raises ModelLoadError."""
    directory = _snapshot(repo_id, MODEL_FILES, branch)
    if is_declared(directory):
        return _download_kokoro(repo_id, branch)
    if _has_any(directory, _WEIGHTS):
        return directory
    directory = _snapshot(repo_id, [*MODEL_FILES, *TORCH_WEIGHTS], branch)
    if not _has_any(directory, TORCH_WEIGHTS) and (there := _quantisations(repo_id)):
        raise ModelLoadError(
            f"{repo_id} has GGUF files: name one as {repo_id}:NAME, with NAME of {', '.join(there)}"
        )
    return directory


def _download_kokoro(repo_id: str, branch: str) -> Path:
    """Downloads the voices of a Kokoro model, and its ONNX file unless it is an IR.

    Raises ModelLoadError if the repository has only the weights of PyTorch.
    """
    directory = _snapshot(repo_id, [*MODEL_FILES, *KOKORO_FILES], branch)
    if find_kokoro(directory) is None:
        raise ModelLoadError(
            f"{repo_id} must have a Kokoro model: {', '.join(KOKORO_FILES)}, or an OpenVINO IR "
            "with voices"
        )
    return directory


def _has_any(directory: Path, patterns: Iterable[str]) -> bool:
    return any(
        path.name != ADAPTER_WEIGHTS for pattern in patterns for path in directory.glob(pattern)
    )


def download_adapter(repo_id: str) -> Path:
    """Downloads a LoRA adapter and returns its directory in the cache. Raises ModelLoadError."""
    directory = _snapshot(repo_id, ADAPTER_FILES)
    for name in ADAPTER_FILES:
        if not (directory / name).is_file():
            raise ModelLoadError(f"{repo_id} must hold a PEFT adapter, it has no {name}")
    return directory


def download_gguf_file(repo_id: str, name: str, branch: str = _MAIN) -> Path:
    """Downloads a GGUF file and returns its path; of a split model, all files and the first path.

    A chat template beside the file is downloaded, too. Raises ModelLoadError.
    """
    path = Path(name)
    all_parts = glob.escape(str(path.parent / model_name(path))) + "-?????-of-?????.gguf"
    directory = _snapshot(
        repo_id,
        [
            glob.escape(name),
            *([all_parts] if path.stem != model_name(path) else []),
            glob.escape(path.with_name(CHAT_TEMPLATE).as_posix()),
        ],
        branch,
    )
    if not (directory / name).is_file():
        there = ", ".join(_gguf_names(repo_id)) or "none"
        raise ModelLoadError(f"{repo_id} has no file {name}; its GGUF files: {there}")
    return find_gguf(directory / name)[0]


def download_gguf(repo_id: str, quantisation: str, branch: str = _MAIN) -> Path:
    """Downloads the GGUF file whose name ends with the quantisation; of a split model, all files.

    Of the other files, chat templates alone are downloaded. Raises ModelLoadError.
    """
    spellings = dict.fromkeys((quantisation, quantisation.upper(), quantisation.lower()))
    names = [f"{start}{name}" for name in spellings for start in ("", "*[-._/]")]
    patterns = [name + end for name in names for end in (".gguf", "-?????-of-?????.gguf")]
    directory = _snapshot(repo_id, [*patterns, f"*{CHAT_TEMPLATE}"], branch)
    fetched = sorted(
        path
        for path in directory.rglob("*.gguf")
        if _is_model(path.relative_to(directory), patterns)
    )
    models = {(path.parent, model_name(path)): path for path in fetched}
    if not models:
        there = ", ".join(_quantisations(repo_id)) or "none"
        raise ModelLoadError(f"{repo_id} has no GGUF file of {quantisation}; there are: {there}")
    if len(models) > 1:
        names = [str(path.relative_to(directory)) for path in models.values()]
        raise ModelLoadError(
            f"{repo_id} has several GGUF files of {quantisation}: {', '.join(names)}"
        )
    return find_gguf(*models.values())[0]


def download_projector(repo_id: str, branch: str = _MAIN) -> Path | None:
    """Downloads the mmproj file of a GGUF repository and returns its path; None if it has none.

    Of several encodings the preferred one is taken. Without the hub, the cache's is. Raises
    ModelLoadError.
    """
    names = filter(is_projector, _list_gguf_files(repo_id, branch))
    name = next(iter(order_projectors(names)), None)
    if name is not None:
        pattern = glob.escape(name.as_posix())
        return _snapshot(repo_id, [pattern], branch, left_out=()) / name
    cached = _snapshot(repo_id, [], branch)
    return next(iter(order_projectors(filter(is_projector, cached.rglob("*")))), None)


def _is_model(path: Path, patterns: Iterable[str]) -> bool:
    is_wanted = any(fnmatch.fnmatchcase(path.as_posix(), pattern) for pattern in patterns)
    return is_wanted and not is_projector(path)


def _snapshot(
    repo_id: str,
    patterns: list[str],
    branch: str = _MAIN,
    left_out: Sequence[str] = (f"*{PROJECTOR}*",),
) -> Path:
    try:
        with progress_shown():
            return fetch(repo_id, patterns, left_out, branch)
    except FAILURES as error:
        failure = HubUnreachable if is_unreachable(error) else ModelLoadError
        raise failure(
            f"there is no directory {repo_id}, and it could not be fetched from the Hugging Face "
            f"hub: {explain_failure(error, repo_id)}"
        ) from error


def _quantisations(repo_id: str) -> list[str]:
    """Returns the quantisations of the repository's GGUF files; none if the hub is out of reach."""
    names = {read_quantisation(model_name(Path(name))) for name in _gguf_names(repo_id)}
    return sorted(filter(None, names))


def _gguf_names(repo_id: str) -> list[str]:
    """Returns the GGUF files of the repository except projectors; [] if the hub fails."""
    return sorted(path.as_posix() for path in _list_gguf_files(repo_id) if not is_projector(path))


def _list_gguf_files(repo_id: str, branch: str = _MAIN) -> list[Path]:
    """Returns the GGUF files of the repository; [] if the hub fails."""
    try:
        with bounded_answers():
            paths = [Path(name) for name in HfApi().list_repo_files(repo_id, revision=branch)]
    except FAILURES:
        return []
    return [path for path in paths if is_gguf(path)]
