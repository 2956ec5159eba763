"""The `model` of a body may be left out: a server has one model, under whatever names."""

from typing import Annotated

from msgspec import Meta

ModelName = Annotated[str | None, Meta(description="One of the served model names; none is the same model.")]
