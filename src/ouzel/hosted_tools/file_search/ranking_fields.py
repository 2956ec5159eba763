"""Reads the fields of a search: filters and ranking options, as OpenAI defines them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.filters import read_filter
from ouzel.hosted_tools.file_search.records import FileQuery, HybridWeights, Ranker

MAX_HITS = 50
DEFAULT_HITS = 10

FilterFields = Annotated[
    dict[str, object] | None,
    Meta(description="Selects files by their attributes: a comparison, or and/or of filters."),
]
Weight = Annotated[float, Meta(ge=0, le=1000)]


class HybridFields(msgspec.Struct, frozen=True, kw_only=True):
    embedding_weight: Annotated[Weight, Meta(description="The weight of the similarity.")]
    text_weight: Annotated[Weight, Meta(description="The weight of equal words.")]


class RankingFields(msgspec.Struct, frozen=True, kw_only=True):
    ranker: Annotated[
        Ranker | None,
        Meta(description="none: only vectors, and the score is the similarity."),
    ] = None
    score_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Leaves out results with a lower score."),
    ] = None
    hybrid_search: Annotated[
        HybridFields | None, Meta(description="The weights of vectors and words.")
    ] = None


def make_query(
    store_ids: tuple[str, ...],
    texts: tuple[str, ...],
    *,
    max_hits: int | None,
    filters: dict[str, object] | None,
    ranking: RankingFields | None,
    path: str = "",
) -> FileQuery:
    """Makes a query; `path` is the place of the fields in a body. Raises InvalidRequest."""
    ranking = ranking or RankingFields()
    weights, hybrid = HybridWeights(), ranking.hybrid_search
    if hybrid is not None:
        weights = HybridWeights(hybrid.embedding_weight, hybrid.text_weight)
        field = f"{path}ranking_options.hybrid_search"
        if not weights.embedding_weight and not weights.text_weight:
            raise InvalidRequest("must have a weight above 0", field=field)
        if ranking.ranker == "none":
            raise InvalidRequest("must not be given beside the ranker none", field=field)
    return FileQuery(
        store_ids=store_ids,
        texts=texts,
        max_hits=max_hits or DEFAULT_HITS,
        filter=None if filters is None else read_filter(filters, f"{path}filters"),
        ranker=ranking.ranker or "auto",
        score_threshold=ranking.score_threshold or 0.0,
        weights=weights,
    )
