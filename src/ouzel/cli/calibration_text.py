"""A calibration takes a model that generates text, and a text, Ouzel's own or a file of the user's."""

from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.calibrated_entry import CHUNK_TOKENS
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.task import task_of
from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.model_directory import LocalModel
from ouzel.errors import ModelLoadError
from ouzel.tokenizer.huggingface import load_tokenizer

MAX_TOKENS = 12288
MAX_BYTES = 16 * 2**20
_PACKAGE, _FILE = "ouzel.backends.openvino.calibration", "text.txt"


def check_generates(local: LocalModel, config: HfConfig) -> None:
    """Raises ModelLoadError for a model that makes embeddings or scores."""
    if (task := task_of(config, local.directory, "auto")) != "generate":
        made = "embeddings" if task == "embed" else "scores"
        raise ModelLoadError(f"{local.name} makes {made}; only models that generate text are calibrated yet")


def calibration_chunks(directory: Path, path: str) -> list[NDArray[np.int64]]:
    """Returns the token ids of the text, MAX_TOKENS at most, in chunks that each begin as a prompt of the model does.

    Raises InvalidOption where the file cannot be read or is empty.
    """
    tokenizer = load_tokenizer(directory)
    text = read_text(path) if path else resources.files(_PACKAGE).joinpath(_FILE).read_text(encoding="utf-8")
    plain = tokenizer.encode(text, add_special_tokens=False)[:MAX_TOKENS]
    if not plain:
        raise InvalidOption(f"--calibration-text: {path} must hold text, it is empty")
    with_marks = tokenizer.encode("a", add_special_tokens=True)
    start = with_marks[: with_marks.index(tokenizer.encode("a", add_special_tokens=False)[0])]
    step = CHUNK_TOKENS - len(start)
    return [np.array([*start, *plain[at : at + step]], np.int64) for at in range(0, len(plain), step)]


def read_text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="ignore")
    except OSError as error:
        raise InvalidOption(f"--calibration-text: {path} cannot be read: {error}") from error
