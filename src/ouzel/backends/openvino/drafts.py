"""Tells the kind of the draft that `draft_model` names, and refuses unfit draft models."""

from pathlib import Path
from typing import Protocol

from ouzel.checkpoint.assistants import is_assistant
from ouzel.checkpoint.draft_head import is_draft_head, refuse_ir_of_draft_head
from ouzel.checkpoint.draft_tokens import refuse_other_tokens
from ouzel.config import ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.pooling import Task


class DraftFacts(Protocol):
    """The facts of a model that decide whether it can draft for another."""

    @property
    def model_type(self) -> str: ...

    @property
    def task(self) -> Task: ...

    @property
    def num_state_slots(self) -> int: ...

    @property
    def attends_to_whole_prompts(self) -> bool: ...


def names_draft_head(model: ModelConfig) -> bool:
    """Tells whether `draft_model` is an EAGLE-3 head."""
    return bool(model.draft_model) and is_draft_head(Path(model.draft_model))


def names_assistant(model: ModelConfig) -> bool:
    """Tells whether `draft_model` is an assistant."""
    return bool(model.draft_model) and is_assistant(Path(model.draft_model))


def refuse_draft_files(model: ModelConfig) -> None:
    """Raises ModelLoadError if the files of a draft model cannot draft for the model."""
    directory = Path(model.draft_model)
    if not directory.is_dir():
        raise ModelLoadError(f"draft_model: {directory} is not a directory")
    refuse_ir_of_draft_head(directory)
    refuse_other_tokens(Path(model.model), directory)


def refuse_unfit_draft(draft: DraftFacts) -> None:
    """Raises ModelLoadError if a model, loaded or inspected, cannot draft for another."""
    if draft.num_state_slots:
        need = "have no recurrent layers"
    elif draft.task != "generate":
        need = "have tokens as its output"
    elif draft.attends_to_whole_prompts:
        need = "not have tokens of a prompt that see later ones"
    else:
        return
    raise ModelLoadError(f"draft_model: must {need}, given a {draft.model_type}")
