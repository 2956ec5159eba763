"""Tells the kind of the draft that `draft_model` names."""

from pathlib import Path

from ouzel.checkpoint.assistants import is_assistant
from ouzel.checkpoint.draft_head import is_draft_head
from ouzel.config import ModelConfig


def names_draft_head(model: ModelConfig) -> bool:
    """Tells whether `draft_model` is an EAGLE-3 head."""
    return bool(model.draft_model) and is_draft_head(Path(model.draft_model))


def names_assistant(model: ModelConfig) -> bool:
    """Tells whether `draft_model` is an assistant."""
    return bool(model.draft_model) and is_assistant(Path(model.draft_model))
