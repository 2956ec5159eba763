"""Defines the fields that TEI's bodies share."""

from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.vectors import TextEncoder, TextLimit
from ouzel.wire.model_name import ModelName

Direction = Annotated[
    Literal["left", "right", "Left", "Right"],
    Meta(description="The side on which a longer text loses tokens."),
]
PromptName = Annotated[str, Meta(description="The name of the model's prompt before every text.")]


class CutFields(msgspec.Struct, kw_only=True):
    truncate: Annotated[bool | None, Meta(description="Cuts texts to the model's own limit.")] = (
        None
    )
    truncation_direction: Direction | None = None

    @property
    def keeps_end(self) -> bool:
        return self.truncation_direction in ("left", "Left")

    def limit(self, encoder: TextEncoder) -> TextLimit:
        limit = encoder.limit(None, truncate=self.truncate, field="truncate")
        return replace(limit, keeps_end=self.keeps_end)


class TeiFields(CutFields, kw_only=True):
    model: ModelName = None
