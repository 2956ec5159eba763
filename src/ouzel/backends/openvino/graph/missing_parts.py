"""Refuses families without a part that the options of a model require."""

from dataclasses import dataclass

from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class MissingParts:
    """True: the options require the part and the family lacks it."""

    vectors: bool
    prediction: bool
    lent_parts: bool
    draft_head: bool


def refuse_missing_parts(missing: MissingParts) -> None:
    """Raises ModelLoadError if a part is missing."""
    if missing.vectors:
        raise ModelLoadError("task embed, score: models of this family only support task generate")
    if missing.prediction:
        raise ModelLoadError(
            "mtp: Ouzel supports no layer that predicts further tokens for this model family"
        )
    if missing.lent_parts:
        raise ModelLoadError(
            "draft_model: an assistant drafts for a Gemma 4 only, whose cache it reads"
        )
    if missing.draft_head:
        raise ModelLoadError("draft_model: Ouzel supports no EAGLE-3 head for this model family")
