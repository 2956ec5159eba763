"""The field that marks where Anthropic's prompt cache may begin anew; blocks, tools and bodies have it."""

from typing import Annotated

from msgspec import Meta

CacheControl = Annotated[
    dict[str, object] | None, Meta(description="Not used: whatever prompts begin with alike is cached by itself.")
]
