"""Defines the records of searches in files."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.hosted_tools.file_search.filters import Attribute, Filter

# The strategy `auto`: most tokens of a chunk, and of the part of it that has a vector of its own.
AUTO_CHUNK_TOKENS = 400
AUTO_WINDOW_TOKENS = 128

Ranker = Literal["auto", "default-2024-11-15", "none"]


class StaticChunking(msgspec.Struct, frozen=True):
    """Chunks of a fixed size, as a client asks for them."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class HybridWeights(msgspec.Struct, frozen=True):
    """The weights of the two lists that reciprocal rank fusion joins."""

    embedding_weight: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    text_weight: Annotated[float, Meta(ge=0, le=1000)] = 0.5


class FileQuery(msgspec.Struct, frozen=True, kw_only=True):
    store_ids: tuple[str, ...]
    texts: tuple[str, ...]  # one search for each text; the results are joined
    max_hits: int
    filter: Filter | None = None
    ranker: Ranker = "auto"  # none: only vectors, and the score is their similarity
    score_threshold: float = 0.0
    weights: HybridWeights = HybridWeights()


class FileHit(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    filename: str
    score: float  # 0 to 1
    attributes: dict[str, Attribute]
    position: int  # the number of the chunk in its file
    heading: str  # the headings above the chunk
    text: str
