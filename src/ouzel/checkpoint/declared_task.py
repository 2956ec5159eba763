"""Reads the task of a checkpoint from its small files."""

from pathlib import Path
from typing import Literal

from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import read_json_object
from ouzel.checkpoint.model_groups import ENCODERS

CLASSIFIES = "ForSequenceClassification"
_SPEECH_TYPES = frozenset({"whisper"})
_SPEAKER_TYPES = frozenset({"kokoro", "style_text_to_speech_2"})


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


def suggest_task(
    directory: Path, config: HfConfig
) -> Literal["generate", "embed", "score", "transcribe", "speak"]:
    """Returns the task that the files declare, or that the model type suggests.

    Raises ModelLoadError.
    """
    if is_speech_type(config.model_type):
        return "transcribe"
    if is_speaker_type(config.model_type):
        return "speak"
    names = config.values.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    declared = read_declared_task(directory, first if isinstance(first, str) else "")
    return declared or ("embed" if is_encoder(config) else "generate")


def is_encoder(config: HfConfig) -> bool:
    """Tells whether the tokens of the model read each other in both directions.

    Such a model makes vectors or scores, and has no KV cache. Some model types have decoders and
    encoders, such as Gemma 3: config.json tells.
    """
    reads_both_ways = config.values.get("use_bidirectional_attention") is True
    return reads_both_ways or is_encoder_type(str(config.values.get("model_type")))


def is_encoder_type(name: str) -> bool:
    """Tells whether a model type, or an architecture of GGUF, has only encoders."""
    return name in ENCODERS.types


def is_speech_type(name: str) -> bool:
    """Tells whether a model type turns speech into text and does nothing else."""
    return name in _SPEECH_TYPES


def is_speaker_type(name: str) -> bool:
    """Tells whether a model type reads texts aloud and does nothing else."""
    return name in _SPEAKER_TYPES
