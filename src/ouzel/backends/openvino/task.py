"""Determines the task of a model: generate, embed, score, transcribe or speak.

The rules: a checkpoint whose config.json names a model for sequence classification scores. A
checkpoint from sentence-transformers (with modules.json) makes embeddings, unless
`config_sentence_transformers.json` calls it a CrossEncoder, which scores. An encoder makes
embeddings, and so does a decoder without its head (Qwen3Model). A Whisper model transcribes, and a
Kokoro model speaks.
Everything else generates. The user's option overrides these rules.
"""

from pathlib import Path

from ouzel.backends.openvino.encoders import encoder_family
from ouzel.checkpoint.declared_task import (
    CLASSIFIES,
    is_speaker_type,
    is_speech_type,
    read_declared_task,
)
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.model import TaskOption
from ouzel.errors import ModelLoadError
from ouzel.pooling import Task

_MAX_LABELS = 4096


def find_task(config: HfConfig, directory: Path, option: TaskOption) -> Task:
    """Returns the task in the option, or for `auto` the task that the files suggest.

    Raises ModelLoadError for the task `score` if the model is an encoder without a scoring head.
    """
    architecture = read_architecture(config)
    reads_whole = encoder_family(config) is not None
    if is_speech_type(config.model_type):
        if option not in ("auto", "transcribe"):
            raise ModelLoadError(f"task {option}: a {config.model_type} only transcribes")
        return "transcribe"
    if is_speaker_type(config.model_type):
        if option not in ("auto", "speak"):
            raise ModelLoadError(f"task {option}: a {config.model_type} only reads texts aloud")
        return "speak"
    if option == "speak":
        raise ModelLoadError(f"task speak: a {config.model_type} has no voices")
    if option == "transcribe":
        raise ModelLoadError(f"task transcribe: a {config.model_type} reads no sound")
    if option == "score" and reads_whole and not architecture.endswith(CLASSIFIES):
        name = architecture or "this encoder"
        raise ModelLoadError(f"task score: {name} has no head that scores")
    if option != "auto":
        return option
    declared = read_declared_task(directory, architecture)
    return declared or ("embed" if reads_whole else "generate")


def read_architecture(config: HfConfig) -> str:
    """Returns the name of the first architecture in config.json, "" if there is none."""
    architectures = config.values.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    return first if isinstance(first, str) else ""


def read_num_labels(config: HfConfig) -> int:
    """Returns the number of labels in config.json.

    Transformers writes the names of the labels unless there are two; without names and number there
    are two. Raises ModelLoadError if the number is out of range.
    """
    labels = config.values.get("id2label")
    num_labels = len(labels) if isinstance(labels, dict) else config.size("num_labels", 2)
    if not 1 <= num_labels <= _MAX_LABELS:
        raise ModelLoadError(
            f"config.json: id2label must have 1 to {_MAX_LABELS} labels, found {num_labels}"
        )
    return num_labels
