"""The options about several models in one server."""

from typing import (
    Annotated,
    Any,
    ClassVar,
)  # Any: values of options, which are read where all options are known

import msgspec

from ouzel.config.option import option


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Several models"

    models: Annotated[
        tuple[str | dict[str, Any], ...],
        option(
            "A model under a name, beside MODEL or instead of it. In the file also a mapping: `name`, `model`, and "
            "options of its own.",
            unset="none",
        ),
    ] = ()
