"""POST /v1/rerank and /v2/rerank order documents by how well they answer a query, as Jina's and Cohere's do."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from ouzel.api.endpoint.operation import PREFIXES, VECTOR_TASKS, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.embedding_fields import check_num_texts
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.pair_scores import Pair, PairFields, PairScores, Text
from ouzel.errors import InvalidRequest


class DocumentText(msgspec.Struct):
    text: Annotated[str, Meta(description="The document.")]


class RerankRequest(PairFields, kw_only=True):
    query: Annotated[str, Meta(description="What the documents are compared with.")]
    documents: Annotated[
        list[str | DocumentText], Meta(min_length=1, description="Texts, or objects with a `text`; 2048 at most.")
    ]
    top_n: (
        Annotated[int, Meta(ge=1, lt=2**31, description="Returns so many of the best; all when not given.")] | None
    ) = None
    return_documents: Annotated[bool | None, Meta(description="Shows the documents beside their scores.")] = None
    max_tokens_per_doc: Annotated[int, Meta(description="Refused: use truncate_prompt_tokens.")] | None = None


class RerankResult(msgspec.Struct):
    index: int
    relevance_score: float
    document: DocumentText | UnsetType = UNSET


class RerankResults(msgspec.Struct):
    id: str
    model: str
    results: list[RerankResult]
    usage: EmbeddingsUsage


class Rerank:
    def __init__(self, services: Services) -> None:
        self._scores = PairScores(services, searches=True)

    async def answer(self, request: Request, body: bytes) -> RerankResults:
        fields, scores = await self._scores.of_body(request, body, RerankRequest, _pairs)
        values = scores.values
        order = sorted(range(len(values)), key=lambda index: -values[index])  # stable: of equals the first
        shows = fields.return_documents is True
        results = [
            RerankResult(index, values[index], DocumentText(text_of(fields.documents[index])) if shows else UNSET)
            for index in order[: fields.top_n]
        ]
        answer_id = f"rerank-{request.scope['ouzel.exchange'].request_id}"
        return RerankResults(answer_id, scores.model, results, scores.usage)


def _pairs(fields: RerankRequest) -> list[Pair]:
    """Raises InvalidRequest."""
    if fields.max_tokens_per_doc is not None:
        complaint = f"is not supported (use truncate_prompt_tokens), given {fields.max_tokens_per_doc}"
        raise InvalidRequest(complaint, field="max_tokens_per_doc")
    check_num_texts(fields.documents, field="documents")
    query = Text(fields.query, "query")
    return [(query, Text(text_of(document), f"documents[{index}]")) for index, document in enumerate(fields.documents)]


def text_of(document: str | DocumentText) -> str:
    return document if isinstance(document, str) else document.text


def _operation(path: str, prefixes: tuple[str, ...], whose: str) -> Operation:
    return Operation(
        method="post",
        path=path,
        prefixes=prefixes,
        summary=f"Orders documents by how well they answer a query, as {whose} does.",
        endpoint=lambda services: services.taking_body(Rerank(services).answer),
        bodies=(RerankRequest,),
        answers=(RerankResults,),
        vector_tasks=VECTOR_TASKS,
    )


OPERATIONS = (
    _operation("/v1/rerank", ("", *PREFIXES), "Jina's API"),
    _operation("/v2/rerank", (), "Cohere's API"),
)
