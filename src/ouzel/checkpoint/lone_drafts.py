"""Refuses checkpoints that draft for another model where a model is needed."""

from pathlib import Path

from ouzel.checkpoint.assistants import find_target
from ouzel.checkpoint.draft_head import is_draft_head, is_ir_of_draft_head
from ouzel.errors import ModelLoadError


def needs_model(directory: Path) -> bool:
    """Tells whether the directory holds an EAGLE-3 head or an assistant, and not a model."""
    return bool(_describe(directory))


def refuse_lone_draft(directory: Path) -> None:
    """Raises ModelLoadError if the directory holds an EAGLE-3 head or an assistant.

    It is called before config.json is read: some heads have no `model_type`.
    """
    refuse_lone_ir_of_head(directory)
    if kind := _describe(directory):
        raise ModelLoadError(
            f"{directory} is {kind} and cannot be served alone: name it as --draft-model of its "
            "model"
        )


def refuse_lone_ir_of_head(directory: Path) -> None:
    """Raises ModelLoadError if the directory holds an EAGLE-3 head as OpenVINO IR.

    Not even a model can use it as its draft.
    """
    if is_ir_of_draft_head(directory):
        raise ModelLoadError(
            f"{directory} is an EAGLE-3 head as OpenVINO IR, which cannot be read; name the "
            "directory of the original head, with safetensors, as --draft-model of its model"
        )


def _describe(directory: Path) -> str:
    """Returns the kind of a draft in words; an empty text for a model."""
    try:
        if is_draft_head(directory):
            return "an EAGLE-3 head"
    except ModelLoadError:  # the loader of models reports a broken config.json
        return ""
    target = find_target(directory)
    return f"an assistant, which drafts for {target}," if target else ""
