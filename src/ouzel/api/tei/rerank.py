"""Orders texts by their relevance to a query, as TEI does: POST /rerank.

The clients of Jina, vLLM and infinity use the same path. They send `documents`: a body with `texts`
and without `documents` is TEI's, and every other body is theirs.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.api.http.exchange import get_exchange
from ouzel.api.openai.embedding_fields import check_num_texts, text_paths
from ouzel.api.ranking.encoded_pairs import Scoring, Text
from ouzel.api.ranking.pair_scores import PairScores
from ouzel.api.ranking.rerank import Rerank, RerankResults, rank_by_score
from ouzel.api.tei.errors import tei_style
from ouzel.api.tei.fields import TeiFields
from ouzel.api.tei.shape import choose_by_work, read_shape
from ouzel.wire.decode import decode_body


class TeiRerankRequest(TeiFields, kw_only=True):
    query: Annotated[str, Meta(description="The query to compare the texts with.")]
    texts: Annotated[list[str], Meta(min_length=1, description="The texts to order; 2048 at most.")]
    raw_scores: Annotated[
        bool | None,
        Meta(description="true: the model's raw scores, of any size, instead of 0 to 1."),
    ] = None
    return_text: Annotated[
        bool | None, Meta(description="Returns the texts beside their scores.")
    ] = None


class Rank(msgspec.Struct):
    index: int
    score: float
    text: str | UnsetType = UNSET


class TeiRerank:
    def __init__(self, services: Services) -> None:
        self._scores = PairScores(services, searches=True)

    async def answer(self, request: Request, body: bytes) -> list[Rank]:
        fields, scores = await self._scores.score_body(request, body, _read)
        shown = fields.texts if fields.return_text else [UNSET] * len(fields.texts)
        return [
            Rank(index, scores.values[index], shown[index])
            for index in rank_by_score(scores.values)
        ]


class EitherRerank:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)
        self._teis = TeiRerank(services)
        self._others = Rerank(services)

    async def answer(self, request: Request, body: bytes) -> list[Rank] | RerankResults:
        if not await self._making.read(lambda: read_shape(body).is_ranking, body):
            return await self._others.answer(request, body)
        get_exchange(request.scope).error_style = tei_style
        return await self._teis.answer(request, body)


def _read(body: bytes) -> tuple[TeiRerankRequest, Scoring]:
    fields = decode_body(body, TeiRerankRequest)
    check_num_texts(fields.texts, field="texts")
    query = Text(fields.query, "query")
    texts = zip(fields.texts, text_paths(fields.texts, field="texts"), strict=True)
    scoring = Scoring(
        model_name=fields.model,
        pairs=[(query, Text(*text)) for text in texts],
        truncate=fields.truncate,
        keeps_end=fields.keeps_end,
        activates=not fields.raw_scores,
    )
    return fields, scoring


OPERATIONS = (
    Operation(
        method="post",
        path="/rerank",
        # /v1/rerank and the root, which have one of the two forms, are documented instead
        is_documented=False,
        endpoint=lambda services: services.make_body_endpoint(EitherRerank(services).answer),
        choice=choose_by_work,
    ),
)
