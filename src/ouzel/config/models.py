"""Defines the option that names several models."""

from typing import Annotated, Any, ClassVar  # Any: `options` checks the values

import msgspec

from ouzel.config.option import option


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Several models"

    models: Annotated[
        tuple[str | dict[str, Any], ...],
        option(
            "A further model, or the only one: NAME=MODEL. In the file also a mapping with `name`, "
            "`model` and options of this model.",
            unset="none",
        ),
    ] = ()
