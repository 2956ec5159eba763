"""Reads the task that the files of a checkpoint declare, apart from generation."""

from pathlib import Path
from typing import Literal

from ouzel.checkpoint.model_files import read_json_object

CLASSIFIES = "ForSequenceClassification"


def read_declared_task(directory: Path, architecture: str) -> Literal["embed", "score"] | None:
    """Returns the task that the files declare; None: they declare no vectors and no scores.

    `architecture` is the first name under `architectures` in config.json. Raises ModelLoadError.
    """
    if architecture.endswith(CLASSIFIES):
        return "score"
    if (directory / "modules.json").is_file():
        own = read_json_object(directory / "config_sentence_transformers.json")
        return "score" if own.get("model_type") == "CrossEncoder" else "embed"
    is_headless = architecture.endswith("Model") and not architecture.endswith("LMHeadModel")
    return "embed" if is_headless else None
