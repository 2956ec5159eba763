"""The field `cache_control`, which blocks, tools and bodies may have: in Anthropic's API it marks a part to cache."""

from typing import Annotated

from msgspec import Meta

CacheControl = Annotated[
    dict[str, object] | None,
    Meta(description="Not used: the server caches common beginnings of prompts by itself."),
]
