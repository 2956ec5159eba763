"""Turns the MODEL argument into a local directory and a name; downloads missing models."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from ouzel.config import ModelConfig
from ouzel.config.cache_root import cache_root
from ouzel.config.model import Demo
from ouzel.demo import MODEL_DIRECTORY, VISION_MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import holds_gguf, is_gguf, model_name

QUANTISATION_NAME = re.compile(r"[\w-]{1,64}")
# An IR directory has one of the two files; models that read images have the second.
IR_FILES = ("openvino_model.xml", "openvino_language_model.xml")
_MAX_SHOWN = 200  # characters of a path in a message
_OWN_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", *IR_FILES)


@dataclass(frozen=True, slots=True)
class LocalModel:
    directory: Path
    name: str  # the model's name for clients, unless --served-model-name names others
    draft: Path | None = None  # the directory of the draft model

    def names_by(self, options: ModelConfig) -> tuple[str, ...]:
        """Returns the model names for clients: `--served-model-name`, or `name` without it."""
        return options.served_model_name or (self.name,)


_DEMOS: dict[Demo, LocalModel] = {
    "text": LocalModel(MODEL_DIRECTORY, "ouzel-demo"),
    "vision": LocalModel(VISION_MODEL_DIRECTORY, "ouzel-demo-vision"),
}


def is_ir(directory: Path) -> bool:
    """Tells whether the directory holds a model that was exported as OpenVINO IR."""
    return any((directory / name).is_file() for name in IR_FILES)


def find_or_download(options: ModelConfig) -> LocalModel:
    """Returns the model and its draft model; without a name, the bundled demo model.

    Raises ModelLoadError.
    """
    local = (
        locate_model(options.model, options.cache_dir) if options.model else _DEMOS[options.demo]
    )
    if not options.draft_model:
        return local
    return replace(local, draft=locate_model(options.draft_model, options.cache_dir).directory)


def locate_model(model: str, cache_dir: str = "") -> LocalModel:
    """Finds a directory or a GGUF file, or downloads the model from the hub.

    A GGUF file becomes a directory in `cache_dir`. Raises ModelLoadError.
    """
    path = Path(os.path.expanduser(model))
    try:
        is_directory = path.is_dir()
    except OSError as error:  # the name is too long, or access is denied
        raise ModelLoadError(
            f"{str(path)[:_MAX_SHOWN]} cannot be read: {error.strerror}"
        ) from error
    if is_directory:
        if not any((path / name).is_file() for name in _OWN_WEIGHTS) and holds_gguf(path):
            return gguf_model(path, cache_dir, path.resolve().name)
        if not any((path / name).is_file() for name in ("config.json", "openvino_model.xml")):
            raise ModelLoadError(
                f"{path} holds no model: no config.json, openvino_model.xml or GGUF file is there"
            )
        return LocalModel(path, path.resolve().name)
    if path.exists():
        if is_gguf(path):
            return gguf_model(path, cache_dir, model_name(path))
        raise ModelLoadError(
            f"{model} is a file; give the directory with config.json and the weights, or a GGUF "
            f"file"
        )
    if path.is_absolute() or model.startswith((".", "~")) or not _is_of_hub(model):
        raise ModelLoadError(f"there is no directory or GGUF file {model}")
    return hub_model(model, cache_dir)


def _is_of_hub(model: str) -> bool:
    """Tells whether the name is `owner/name`, perhaps with a colon and a quantisation or file."""
    repo_id, _, file = model.partition(":")
    is_file = is_gguf(Path(file)) and ".." not in Path(file).parts
    return repo_id.count("/") == 1 and ("/" not in file or is_file)


def hub_model(model: str, cache_dir: str) -> LocalModel:
    """Downloads `owner/name`, or of a GGUF repository `owner/name:Q4_K_M` or `owner/name:FILE`."""
    from ouzel.model_store.hub import download, download_gguf, download_gguf_file  # noqa: PLC0415

    repo_id, colon, quantisation = model.partition(":")
    if not colon:
        return LocalModel(download(repo_id), model)
    if is_gguf(Path(quantisation)):
        return gguf_model(download_gguf_file(repo_id, quantisation), cache_dir, model)
    if not QUANTISATION_NAME.fullmatch(quantisation):
        raise ModelLoadError(f"{model}: a quantisation must follow the colon, as Q4_K_M")
    return gguf_model(download_gguf(repo_id, quantisation), cache_dir, model)


def gguf_model(path: Path, cache_dir: str, name: str) -> LocalModel:
    from ouzel.gguf.model_directory import model_directory  # noqa: PLC0415

    return LocalModel(model_directory(path, cache_root(cache_dir)), name)
