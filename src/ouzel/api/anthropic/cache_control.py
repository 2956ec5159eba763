"""Defines the field `cache_control` of blocks, tools and bodies, which has no effect here.

In Anthropic's API it marks a part of the prompt to cache.
"""

from typing import Annotated

from msgspec import Meta

CacheControl = Annotated[
    dict[str, object] | None,
    Meta(description="Not used: the server caches common beginnings of prompts by itself."),
]
