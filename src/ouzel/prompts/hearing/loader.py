"""Loads the sound processor of a checkpoint.

Each family is a module here, chosen by the checkpoint's `model_type` and imported only then. Its
function `load(files)` makes the processor from the checkpoint's files.
"""

from importlib import import_module
from pathlib import Path

from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.vision.settings import read_processor_files

# model_type -> module
_FAMILIES = {
    "gemma4": "gemma4",
    "gemma4_unified": "gemma4_unified",
    "qwen2_audio": "qwen2_audio",
    "qwen3_asr": "qwen3_asr",
    "qwen3_omni_moe": "qwen3_omni_moe",
}


def load_sound_processor(directory: Path) -> SoundProcessor | None:
    """Returns the sound processor of a checkpoint.

    Returns None if it has no audio encoder, or an unknown family. Raises ModelLoadError.
    """
    files = read_processor_files(directory)
    module = _FAMILIES.get(files.model_type)
    if module is None or not isinstance(files.config.get("audio_config"), dict):
        return None
    processor: SoundProcessor = import_module(f"ouzel.prompts.hearing.{module}").load(files)
    return processor
