"""The `model` of a body may be left out: then the first served model answers."""

from typing import Annotated

from msgspec import Meta

ModelName = Annotated[
    str | None, Meta(description="One of the served model names; none is the first.")
]

_PLACEHOLDER = "default/not-specified"  # infinity's clients send it where their user names no model


def names_no_model(name: str | None) -> bool:
    return not name or name == _PLACEHOLDER
