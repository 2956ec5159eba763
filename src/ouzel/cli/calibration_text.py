"""Reads the text of a calibration: Ouzel's own text or a file of the user."""

from importlib import resources
from pathlib import Path

from ouzel.backends.openvino.calibration.recording import CalibrationText
from ouzel.backends.openvino.task import find_task
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.invalid_option import InvalidOption
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer, load_tokenizer

MAX_TOKENS = 12288
MAX_BYTES = 16 * 2**20
_SAMPLE_CHARACTERS = 100
_PACKAGE, _FILE = "ouzel.backends.openvino.calibration", "text.txt"


def check_generates(local: LocalModel, config: HfConfig) -> None:
    """Raises ModelLoadError if the model makes embeddings or scores instead of text."""
    if (task := find_task(config, local.directory, "auto")) != "generate":
        made = "embeddings" if task == "embed" else "scores"
        raise ModelLoadError(
            f"{local.name} makes {made}; only models that generate text can be calibrated"
        )


def read_calibration_text(directory: Path, path: str) -> CalibrationText:
    """Returns the first MAX_TOKENS tokens of the text.

    Raises InvalidOption if the file is empty or cannot be read.
    """
    tokenizer = load_tokenizer(directory)
    text = (
        read_text(path)
        if path
        else resources.files(_PACKAGE).joinpath(_FILE).read_text(encoding="utf-8")
    )
    token_ids = tokenizer.encode(text, add_special_tokens=False)[:MAX_TOKENS]
    if not token_ids:
        raise InvalidOption(f"--calibration-text: {path} must hold text, it is empty")
    return CalibrationText(_start_of_prompts(tokenizer, text[:_SAMPLE_CHARACTERS]), token_ids)


def _start_of_prompts(tokenizer: HuggingFaceTokenizer, sample: str) -> tuple[int, ...]:
    """Returns the tokens that the tokenizer puts before a text."""
    plain = tokenizer.encode(sample, add_special_tokens=False)
    marked = tokenizer.encode(sample, add_special_tokens=True)
    starts = range(len(marked) - len(plain) + 1)
    length = next((at for at in starts if marked[at : at + len(plain)] == plain), 0)
    return tuple(marked[:length])


def read_text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="ignore")
    except OSError as error:
        raise InvalidOption(f"--calibration-text: {path} cannot be read: {error}") from error
