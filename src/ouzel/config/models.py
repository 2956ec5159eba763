"""Defines the options of several models, and of models that come and go."""

from typing import Annotated, Any, ClassVar  # Any: `options` checks the values

import msgspec
from msgspec import Meta

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
    models_dir: Annotated[
        str,
        option(
            "A directory of models: each subdirectory with a model and each GGUF file can be "
            "asked for by its name, and is loaded for the first request.",
            unset="none",
            is_common=True,
        ),
    ] = ""
    load_on_request: (
        Annotated[
            bool,
            option(
                "Load a model that is not in memory when a request names it.",
                unset="on with --models-dir, --idle-unload-s (0 or more), --max-loaded-models, "
                "--models-memory-gib, --one-group",
            ),
        ]
        | None
    ) = None
    max_loaded_models: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Most models in memory; the least recently used idle one is unloaded for another. "
                "Turns on --load-on-request.",
                unset="3, or the number of models that the options name, if it is larger",
            ),
        ]
        | None
    ) = None
    models_memory_gib: (
        Annotated[
            float,
            Meta(gt=0, le=2**20),
            option(
                "Memory of all models together in GiB, with their caches. Needs --load-on-request.",
                unset="80 % of the memory that is free at the start",
            ),
        ]
        | None
    ) = None
    one_group: Annotated[
        bool,
        option(
            "Keep one --group in memory, besides the group `permanent`, as OpenVINO Model Server "
            "does. Turns on --load-on-request."
        ),
    ] = False
