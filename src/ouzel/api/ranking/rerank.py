"""Orders documents by their relevance to a query: POST /v1/rerank and /v2/rerank.

Jina's and Cohere's APIs have these paths. infinity's clients get documents in another form: a
request is theirs if it has `raw_scores`, a field that only their API has beside `documents` and
that they always send.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, VECTOR_TASKS, Operation, Words
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.embedding_fields import check_num_texts
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.billing import CohereMeta, cohere_meta
from ouzel.api.ranking.encoded_pairs import Pair, Scoring, Text
from ouzel.api.ranking.pair_scores import PairFields, PairScores
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import decode_body
from ouzel.wire.validation_errors import show_value

_COHERES_MAX_TOKENS_PER_DOC = 4096
# the limit of Cohere and of OVMS
_MAX_DOCUMENTS = 10_000

Version = Literal["1", "2"]


class DocumentText(msgspec.Struct):
    text: Annotated[str, Meta(description="The document.")]


class RerankRequest(PairFields, kw_only=True):
    query: Annotated[str, Meta(description="The query to compare the documents with.")]
    documents: Annotated[
        list[str | DocumentText],
        Meta(min_length=1, description="Texts, or objects with a `text`; 10000 at most."),
    ]
    top_n: (
        Annotated[
            int,
            Meta(
                ge=1, lt=2**31, description="Returns this number of best documents; default: all."
            ),
        ]
        | None
    ) = None
    return_documents: Annotated[
        bool | None, Meta(description="Returns the documents beside their scores.")
    ] = None
    max_tokens_per_doc: (
        Annotated[
            int,
            Meta(
                ge=1,
                lt=2**31,
                description="Cuts longer documents to this number of tokens; default of "
                "/v2/rerank: 4096.",
            ),
        ]
        | None
    ) = None
    max_chunks_per_doc: (
        Annotated[
            int,
            Meta(
                ge=1,
                lt=2**31,
                description="Most pieces of a divided long document; the rest of the document is "
                "cut off.",
            ),
        ]
        | None
    ) = None
    raw_scores: Annotated[
        bool | None,
        Meta(
            description="infinity's: true means use_activation false. With this field, documents "
            "are returned as texts."
        ),
    ] = None


class RerankResult(msgspec.Struct):
    index: int
    relevance_score: float
    document: DocumentText | str | UnsetType = UNSET


class RerankResults(msgspec.Struct):
    id: str
    model: str
    results: list[RerankResult]
    usage: EmbeddingsUsage
    meta: CohereMeta


class Rerank:
    def __init__(self, services: Services, *, version: Version = "1") -> None:
        """`version` is the version of Cohere's API."""
        self._scores = PairScores(services, searches=True)
        self._version = version

    async def answer(self, request: Request, body: bytes) -> RerankResults:
        fields, scores = await self._scores.score_body(
            request, body, partial(_read, version=self._version)
        )
        values = scores.values
        results = [
            RerankResult(index, values[index], _show_document(fields, index))
            for index in rank_by_score(values)[: fields.top_n]
        ]
        meta = cohere_meta(
            self._version, scores.usage.prompt_tokens, num_documents=scores.num_pieces
        )
        answer_id = f"rerank-{request.scope['ouzel.exchange'].request_id}"
        return RerankResults(answer_id, scores.model, results, scores.usage, meta)


def rank_by_score(values: list[float]) -> list[int]:
    """Returns the indices of the values, highest value first; equal values keep their order."""
    return sorted(range(len(values)), key=lambda index: -values[index])


def _read(body: bytes, *, version: Version) -> tuple[RerankRequest, Scoring]:
    fields = decode_body(body, RerankRequest)
    if fields.raw_scores is not None:
        if fields.use_activation is fields.raw_scores:
            contrary = show_value(not fields.use_activation)
            limit = f"must be {contrary} beside use_activation {show_value(fields.use_activation)}"
            raise InvalidRequest(
                f"{limit}, given {show_value(fields.raw_scores)}", field="raw_scores"
            )
        fields.use_activation = not fields.raw_scores
    scoring = fields.scoring(
        _pairs(fields),
        max_document_tokens=_max_document_tokens(fields, version),
        divides_documents=True,
        max_pieces=fields.max_chunks_per_doc,
    )
    return fields, scoring


def _max_document_tokens(fields: RerankRequest, version: Version) -> int | None:
    """Returns the request's limit; /v2/rerank has a default unless other fields cut the texts."""
    says_otherwise = fields.truncate_prompt_tokens is not None or fields.truncate is not None
    if fields.max_tokens_per_doc is not None or version == "1" or says_otherwise:
        return fields.max_tokens_per_doc
    return _COHERES_MAX_TOKENS_PER_DOC


def _pairs(fields: RerankRequest) -> list[Pair]:
    check_num_texts(fields.documents, field="documents", max_texts=_MAX_DOCUMENTS)
    query = Text(fields.query, "query")
    return [
        (query, Text(_get_text(document), f"documents[{index}]"))
        for index, document in enumerate(fields.documents)
    ]


def _show_document(fields: RerankRequest, index: int) -> DocumentText | str | UnsetType:
    if not fields.return_documents:
        return UNSET
    text = _get_text(fields.documents[index])
    return DocumentText(text) if fields.raw_scores is None else text


def _get_text(document: str | DocumentText) -> str:
    return document if isinstance(document, str) else document.text


def _operation(
    path: str, whose: str, *, version: Version, prefixes: tuple[str, ...] = (), words: Words
) -> Operation:
    return Operation(
        method="post",
        path=path,
        prefixes=prefixes,
        summary=f"Orders documents by their relevance to a query, as {whose} does.",
        endpoint=lambda services: services.make_body_endpoint(
            Rerank(services, version=version).answer
        ),
        choice=choose_for("score", "embed"),
        bodies=(RerankRequest,),
        answers=(RerankResults,),
        own_tasks=VECTOR_TASKS,
        words=words,
    )


OPERATIONS = (
    _operation("/v1/rerank", "Jina's API", version="1", prefixes=PREFIXES, words="openai"),
    _operation("/v2/rerank", "Cohere's API", version="2", words="cohere"),
)
