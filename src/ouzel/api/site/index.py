"""What the server tells of itself is one record, which becomes JSON or the page."""

from collections.abc import Mapping, Sequence

import msgspec

from ouzel import __version__


class Index(msgspec.Struct):
    models: Sequence[str]
    max_model_len: int | None  # of the first; None while there is none
    needs_api_key: bool
    keeps_conversations: bool
    max_logprobs: int  # -1: the whole vocabulary
    base_urls: Mapping[str, str]  # by whose clients they are for
    openapi: str  # the path of the OpenAPI document
    server: str = "Ouzel"
    version: str = __version__
