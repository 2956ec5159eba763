"""POST /v1/score says how well pairs of texts fit, as vLLM does."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.embedding_fields import VectorFields, check_num_texts
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.pair_scores import EncodedPairs, Pair, PairScores
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_model, listed

_Texts = str | Annotated[list[str], Meta(min_length=1)]


class ScoreRequest(VectorFields, kw_only=True):
    text_1: Annotated[_Texts, Meta(description="The first texts of pairs, or one that is the first of all.")]
    text_2: Annotated[_Texts, Meta(description="The second texts, as many as pairs; 2048 at most.")]
    instruction: Annotated[
        str | None, Meta(description="What counts as an answer, for models that read one (Qwen3-Reranker).")
    ] = None
    use_activation: Annotated[
        bool | None, Meta(description="false: scores as the model gives them, of any size, rather than 0 to 1.")
    ] = None


class ScoreObject(msgspec.Struct, tag_field="object", tag="score"):
    index: int
    score: float


class ScoreList(msgspec.Struct, tag_field="object", tag="list"):
    data: list[ScoreObject]
    model: str
    usage: EmbeddingsUsage


class Score:
    def __init__(self, services: Services) -> None:
        self._scores = PairScores(services)

    async def answer(self, request: Request, body: bytes) -> ScoreList:
        making = self._scores.making
        fields, encoded = await making.read(partial(self._read, body), body)
        scores, usage = await self._scores.scores(
            request, encoded, priority=fields.priority or 0, activates=fields.use_activation is not False
        )
        data = [ScoreObject(index, score) for index, score in enumerate(scores)]
        return ScoreList(data, making.model.names[0], EmbeddingsUsage(usage.prompt_tokens, usage.prompt_tokens))

    def _read(self, body: bytes) -> tuple[ScoreRequest, EncodedPairs]:
        fields = decode_body(body, ScoreRequest)
        check_model(fields.model, self._scores.making.model)
        firsts, seconds = listed(fields.text_1), listed(fields.text_2)
        check_num_texts(seconds, field="text_2")
        if len(firsts) not in (1, len(seconds)):
            raise InvalidRequest(
                f"must have 1 or {len(seconds)} texts, as text_2 has, given {len(firsts)}", field="text_1"
            )
        firsts = firsts * len(seconds) if len(firsts) == 1 else firsts
        paths = ["text_2"] if isinstance(fields.text_2, str) else [f"text_2[{index}]" for index in range(len(seconds))]
        pairs = [Pair(*each) for each in zip(firsts, seconds, paths, strict=True)]
        return fields, self._scores.encode(pairs, fields, fields.instruction)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/score",
        prefixes=("", *PREFIXES),
        summary="How well pairs of texts fit, as vLLM says it.",
        endpoint=lambda services: services.taking_body(Score(services).answer),
        bodies=(ScoreRequest,),
        answers=(ScoreList,),
    ),
)
