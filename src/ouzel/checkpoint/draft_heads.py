"""Tells draft heads, which draft from the hidden rows of another model, from models.

A draft head cannot be served alone.
"""

from pathlib import Path

from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.errors import ModelLoadError

# The model types of heads, and the models that they draft for.
_TARGETS = {
    "gemma4_assistant": "a Gemma 4",
    "gemma4_unified_assistant": "a Gemma 4 12B",
}


def is_draft_head(directory: Path) -> bool:
    """Tells whether the directory holds a head, and not a model."""
    try:
        return read_hf_config(directory).values.get("model_type") in _TARGETS
    except ModelLoadError:  # the loader of models reports it
        return False


def refuse_head(config: HfConfig) -> None:
    """Raises ModelLoadError if the checkpoint is a head."""
    if target := _TARGETS.get(str(config.values.get("model_type"))):
        raise ModelLoadError(
            f"a {config.model_type} cannot be served alone: it drafts for {target}, as its "
            "--draft-model"
        )
