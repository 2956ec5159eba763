"""Qwen3-Omni reads up to 40 minutes of a sound as Qwen3-ASR does, without silence behind a short
one.

Reference: transformers, models/qwen3_omni_moe/processing_qwen3_omni_moe.py; the limit of 40 minutes
is from Qwen3-Omni (Xu 2025, arXiv 2509.17765).
"""

from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.qwen3_asr import Qwen3AsrProcessor, read_feature_token, read_mel
from ouzel.prompts.vision.settings import ProcessorFiles

_MAX_SECONDS = 2400


def load(files: ProcessorFiles) -> SoundProcessor:
    """Makes the processor. Raises ModelLoadError."""
    return Qwen3AsrProcessor(read_feature_token(files), read_mel(files), max_seconds=_MAX_SECONDS)
