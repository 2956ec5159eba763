"""Defines the `model` field of a body. Without it the first suitable model answers."""

from typing import Annotated

from msgspec import Meta

ModelName = Annotated[
    str | None,
    Meta(description="One of the served model names; without it the first suitable model answers."),
]

# infinity's clients send this if their user names no model
_PLACEHOLDER = "default/not-specified"


def names_no_model(name: str | None) -> bool:
    return not name or name == _PLACEHOLDER
