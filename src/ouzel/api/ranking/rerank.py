"""POST /v1/rerank and /v2/rerank order documents by how well they answer a query, as Jina's and Cohere's do."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.embedding_fields import VectorFields, check_num_texts
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.pair_scores import EncodedPairs, Pair, PairScores
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_model


class DocumentText(msgspec.Struct):
    text: Annotated[str, Meta(description="The document.")]


class RerankRequest(VectorFields, kw_only=True):
    query: Annotated[str, Meta(description="What the documents are compared with.")]
    documents: Annotated[
        list[str | DocumentText], Meta(min_length=1, description="Texts, or objects with a `text`; 2048 at most.")
    ]
    top_n: (
        Annotated[int, Meta(ge=1, lt=2**31, description="Returns so many of the best; all when not given.")] | None
    ) = None
    return_documents: Annotated[bool | None, Meta(description="Shows the documents beside their scores.")] = None
    instruction: Annotated[
        str | None, Meta(description="What counts as an answer, for models that read one (Qwen3-Reranker).")
    ] = None
    use_activation: Annotated[
        bool | None, Meta(description="false: scores as the model gives them, of any size, rather than 0 to 1.")
    ] = None
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
        self._scores = PairScores(services)

    async def answer(self, request: Request, body: bytes) -> RerankResults:
        making = self._scores.making
        fields, encoded = await making.read(partial(self._read, body), body)
        scores, usage = await self._scores.scores(
            request, encoded, priority=fields.priority or 0, activates=fields.use_activation is not False
        )
        order = sorted(range(len(scores)), key=lambda index: -scores[index])  # stable: of equals the first
        shows = fields.return_documents is True
        results = [
            RerankResult(index, scores[index], DocumentText(text_of(fields.documents[index])) if shows else UNSET)
            for index in order[: fields.top_n]
        ]
        num_tokens = usage.prompt_tokens
        answer_id = f"rerank-{request.scope['ouzel.exchange'].request_id}"
        return RerankResults(answer_id, making.model.names[0], results, EmbeddingsUsage(num_tokens, num_tokens))

    def _read(self, body: bytes) -> tuple[RerankRequest, EncodedPairs]:
        fields = decode_body(body, RerankRequest)
        check_model(fields.model, self._scores.making.model)
        if fields.max_tokens_per_doc is not None:
            complaint = f"is not supported (use truncate_prompt_tokens), given {fields.max_tokens_per_doc}"
            raise InvalidRequest(complaint, field="max_tokens_per_doc")
        check_num_texts(fields.documents, field="documents")
        pairs = [
            Pair(fields.query, text_of(document), f"documents[{index}]")
            for index, document in enumerate(fields.documents)
        ]
        return fields, self._scores.encode(pairs, fields, fields.instruction)


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
    )


OPERATIONS = (
    _operation("/v1/rerank", ("", *PREFIXES), "Jina's API"),
    _operation("/v2/rerank", (), "Cohere's API"),
)
