"""The `model` of a body may be left out: then it is the first that is served."""

from typing import Annotated

from msgspec import Meta

ModelName = Annotated[str | None, Meta(description="One of the served model names; none is the first.")]
