"""Defines the options of tools that this server runs for its clients."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ouzel.config.option import option


class HostedToolsConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Tools that the server runs"

    max_tool_calls: Annotated[
        int,
        Meta(ge=1, le=10_000),
        option("Most calls of such tools in one response; a request may ask for fewer."),
    ] = 128
    tool_call_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time of one call.")
    ] = 60.0
    max_tool_output_chars: Annotated[
        int,
        Meta(ge=1000, le=2**24),
        option("Longest text of one call that the model reads; the rest is left out."),
    ] = 100_000
