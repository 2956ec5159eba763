"""Finds the mmproj file of a GGUF model: beside the model, or by its path."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import Gguf, read_gguf
from ouzel.gguf.files import (
    AUTO,
    NONE,
    is_gguf,
    is_projector,
    list_projectors,
    model_name,
    read_quantisation,
)
from ouzel.gguf.seeing import explain_mismatch

logger = logging.getLogger(__name__)

_SEPARATORS = re.compile(r"[-._\s]+")


def choose_projector(
    mmproj: str, model: Path, read_model: Callable[[], Gguf], repository: Path | None = None
) -> Path | None:
    """Returns the mmproj file of a model, None for a model that reads only text.

    `mmproj` is AUTO, NONE or a path. AUTO takes a file of the directory `repository`, whose files
    belong to one model, else one beside the model. `read_model` reads the model, if that is
    needed. Raises ModelLoadError for a named file that does not belong to the model.
    """
    if mmproj == NONE:
        return None
    if mmproj != AUTO:
        return _check_named(Path(mmproj).expanduser(), read_model())
    candidates = [] if repository is None else list_projectors(repository)
    candidates += [path for path in list_projectors(model.parent) if _is_of_model(path, model)]
    return next((path for path in candidates if _belongs(path, read_model())), None)


def _check_named(path: Path, model: Gguf) -> Path:
    if not path.is_file():
        raise ModelLoadError(f"--mmproj: there is no file {path}")
    if mismatch := explain_mismatch(model, make_model_config(model), read_gguf([path])):
        raise ModelLoadError(f"--mmproj: {path} cannot be used: {mismatch}")
    return path


def _is_of_model(projector: Path, model: Path) -> bool:
    """Tells by names whether the file is of the model: in a directory with several models, it must
    have the model's name.
    """
    models = {
        _plain(path) for path in model.parent.iterdir() if is_gguf(path) and not is_projector(path)
    }
    return len(models) < 2 or _plain(model) in _plain(projector)


def _belongs(projector: Path, model: Gguf) -> bool:
    """Tells whether the encoder can be served with the language model; says so if it cannot."""
    try:
        mismatch = explain_mismatch(model, make_model_config(model), read_gguf([projector]))
    except ModelLoadError as error:
        mismatch = str(error)
    if mismatch:
        logger.warning("pictures will be refused: %s is not used: %s", projector.name, mismatch)
    return not mismatch


def _plain(path: Path) -> str:
    """Returns a model's name in small letters, without its encoding and without separators."""
    name = model_name(path)
    encoding = read_quantisation(name)
    return _SEPARATORS.sub("", name.removesuffix(encoding).lower())
