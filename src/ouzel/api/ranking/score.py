"""Scores how well pairs of texts fit, as vLLM does: POST /v1/score."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, VECTOR_TASKS, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.embedding_fields import check_num_texts, text_paths
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.encoded_pairs import Pair, Scoring, Text
from ouzel.api.ranking.pair_scores import PairFields, PairScores
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import decode_body
from ouzel.wire.options import list_texts

_Texts = str | Annotated[list[str], Meta(min_length=1)]


class ScoreRequest(PairFields, kw_only=True):
    text_1: Annotated[
        _Texts, Meta(description="The first texts of the pairs, or one first text for all pairs.")
    ]
    text_2: Annotated[_Texts, Meta(description="The second texts of the pairs; 2048 at most.")]


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
        _, scores = await self._scores.score_body(request, body, _read)
        data = [ScoreObject(index, score) for index, score in enumerate(scores.values)]
        return ScoreList(data, scores.model, scores.usage)


def _read(body: bytes) -> tuple[ScoreRequest, Scoring]:
    fields = decode_body(body, ScoreRequest)
    return fields, fields.scoring(_pairs(fields))


def _pairs(fields: ScoreRequest) -> list[Pair]:
    firsts, seconds = _texts(fields.text_1, "text_1"), _texts(fields.text_2, "text_2")
    check_num_texts(seconds, field="text_2")
    if len(firsts) not in (1, len(seconds)):
        as_many = "1 text" if len(seconds) == 1 else f"1 or {len(seconds)} texts"
        raise InvalidRequest(
            f"must have {as_many}, as text_2 has, given {len(firsts)}", field="text_1"
        )
    firsts = firsts * len(seconds) if len(firsts) == 1 else firsts
    return list(zip(firsts, seconds, strict=True))


def _texts(texts: str | list[str], field: str) -> list[Text]:
    return [
        Text(*each) for each in zip(list_texts(texts), text_paths(texts, field=field), strict=True)
    ]


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/score",
        prefixes=("", *PREFIXES),
        summary="Scores how well pairs of texts fit, as vLLM does.",
        endpoint=lambda services: services.make_body_endpoint(Score(services).answer),
        choice=choose_for("score", "embed"),
        bodies=(ScoreRequest,),
        answers=(ScoreList,),
        own_tasks=VECTOR_TASKS,
    ),
)
