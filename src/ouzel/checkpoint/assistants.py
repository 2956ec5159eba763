"""Tells assistants, which draft with the hidden rows of another model, from models.

An assistant cannot be served alone.
"""

from pathlib import Path

from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.errors import ModelLoadError

# The model types of assistants, and the models that they draft for.
_TARGETS = {
    "gemma4_assistant": "a Gemma 4",
    "gemma4_unified_assistant": "a Gemma 4 12B",
}


def is_assistant(directory: Path) -> bool:
    """Tells whether the directory holds an assistant, and not a model."""
    return bool(find_target(directory))


def find_target(directory: Path) -> str:
    """Returns the model that an assistant drafts for, in words; an empty text for a model."""
    try:
        model_type = read_hf_config(directory).values.get("model_type")
    except ModelLoadError:  # the loader of models reports it
        return ""
    return _TARGETS.get(str(model_type), "")
