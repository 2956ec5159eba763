"""Finds the GGUF files of a model from one of them, or from their directory."""

import re
from collections.abc import Iterable
from pathlib import Path

from ouzel.errors import ModelLoadError

SUFFIX = ".gguf"
MAX_SPLITS = 10_000
_SPLIT = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
# The end of a model's name: Q4_K_M, IQ4_XS, UD-Q4_K_XL, MXFP4_MOE, BF16.
_QUANTISATION = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|MXFP4\w*|BF16|F16|F32))$", re.IGNORECASE
)
CHAT_TEMPLATE = "chat_template.jinja"
PROJECTOR = "mmproj"  # part of the names of files with a vision encoder
AUTO, NONE = "auto", "none"  # values of --mmproj besides paths
# The order of preference of llama.cpp among encodings of an mmproj file; others come last.
_PREFERRED = ("f16", "bf16", "q8_0", "f32")


def is_gguf(path: Path) -> bool:
    return path.suffix.lower() == SUFFIX


def model_name(path: Path) -> str:
    """Returns the file's name without its suffix and its number among the model's files."""
    split = _SPLIT.fullmatch(path.name)
    return split["name"] if split else path.stem


def read_quantisation(name: str) -> str:
    """Returns the part of a model's name that names its quantisation, or ""."""
    end = _QUANTISATION.search(name)
    return end[1] if end else ""


def find_chat_template(file: Path) -> Path | None:
    """Returns the chat template in the file's directory, None if there is none."""
    template = file.with_name(CHAT_TEMPLATE)
    return template if template.is_file() else None


def holds_gguf(directory: Path) -> bool:
    return bool(_models_in(directory))


def find_gguf(path: Path) -> list[Path]:
    """Returns the files of the model to which the file belongs, or of the only model in the
    directory.

    The first file of the model comes first. Raises ModelLoadError.
    """
    if not path.is_dir():
        return _with_siblings(path)
    models = _models_in(path)
    if not models:
        raise ModelLoadError(f"{path} has no GGUF file")
    if len(models) > 1:
        names = ", ".join(sorted(models)[:16])
        raise ModelLoadError(
            f"{path} has {len(models)} GGUF models: {names}; give the file of one of them"
        )
    [first] = models.values()
    return _with_siblings(first)


def is_projector(path: Path) -> bool:
    """Tells by its name whether a file has a vision encoder instead of a language model."""
    return is_gguf(path) and PROJECTOR in path.name.lower()


def list_projectors(directory: Path) -> list[Path]:
    """Returns the mmproj files of a directory, the preferred encoding first."""
    return order_projectors(
        [path for path in directory.iterdir() if is_projector(path) and path.is_file()]
    )


def order_projectors(paths: Iterable[Path]) -> list[Path]:
    def rank(path: Path) -> tuple[int, Path]:
        kind = _read_encoding(path)
        return (_PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED), path)

    return sorted(paths, key=rank)


def _read_encoding(path: Path) -> str:
    """Returns the encoding in a name such as mmproj-F16, mmproj-model-f16 or Model.mmproj-Q8_0."""
    return read_quantisation(path.stem).lower()


def _models_in(directory: Path) -> dict[str, Path]:
    """Returns one file of each model by the model's name."""
    files = sorted(path for path in directory.iterdir() if is_gguf(path) and not is_projector(path))
    return {model_name(path): path for path in files}


def _with_siblings(path: Path) -> list[Path]:
    split = _SPLIT.fullmatch(path.name)
    if split is None:
        return [path]
    if (count := int(split["count"])) > MAX_SPLITS:
        raise ModelLoadError(
            f"{path}: a model must be split into <= {MAX_SPLITS} files, found {count}"
        )
    paths = [
        path.with_name(f"{split['name']}-{number:05}-of-{count:05}.gguf")
        for number in range(1, count + 1)
    ]
    if missing := [sibling.name for sibling in paths if not sibling.is_file()]:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        raise ModelLoadError(
            f"{path.parent} lacks {', '.join(missing[:8])}{more}, which belong to {path.name}"
        )
    return paths
