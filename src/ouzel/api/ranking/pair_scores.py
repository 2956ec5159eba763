"""Scores pairs of texts.

The model is a cross encoder, a decoder that says yes or no, an encoder of embeddings, whose cosine
is the score, or a model with a vector of each token (late interaction).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.api.openai.embedding_fields import VectorFields
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.api.ranking.encoded_pairs import EncodedPairs, Pair, Scoring, encode_pairs
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel, Usage
from ouzel.vectors import activate_logits, compute_relevance, finish_vectors
from ouzel.wire.options import check_model


class PairFields(VectorFields, kw_only=True):
    instruction: Annotated[
        str | None,
        Meta(
            description="Describes a good answer, for models that read an instruction "
            "(Qwen3-Reranker)."
        ),
    ] = None
    use_activation: Annotated[
        bool | None,
        Meta(description="false: the model's raw scores, of any size, instead of 0 to 1."),
    ] = None

    def scoring(
        self,
        pairs: Sequence[Pair],
        *,
        max_document_tokens: int | None = None,
        divides_documents: bool = False,
        max_pieces: int | None = None,
    ) -> Scoring:
        return Scoring(
            model_name=self.model,
            pairs=pairs,
            truncate_prompt_tokens=self.truncate_prompt_tokens,
            truncate=self.truncate,
            max_document_tokens=max_document_tokens,
            divides_documents=divides_documents,
            max_pieces=max_pieces,
            instruction=self.instruction,
            activates=self.use_activation is not False,
            priority=self.priority or 0,
        )


Fields = TypeVar("Fields")


@dataclass(frozen=True, slots=True)
class Scores:
    values: list[float]  # the best score among the pieces of each pair
    model: str
    usage: EmbeddingsUsage
    num_pieces: int  # pieces of all pairs


class PairScores:
    def __init__(self, services: Services, *, searches: bool = False) -> None:
        """Uses the prompts of embedding models for queries and documents if `searches`."""
        self._making = VectorMaker(services)
        self._searches = searches
        # OpenVINO Model Server cuts the query to half of the model's tokens.
        self._cuts_queries = services.config.profile == "ovms"

    async def score_body(
        self, request: Request, body: bytes, read: Callable[[bytes], tuple[Fields, Scoring]]
    ) -> tuple[Fields, Scores]:
        """Scores the pairs that `read` finds in the body. `read` is called on a worker thread."""
        fields, scoring, encoded = await self._making.read(partial(self._read, body, read), body)
        values, usage = await self._values(request, encoded, scoring)
        best: list[float] = np.maximum.reduceat(values, encoded.begins).tolist()
        num_tokens = usage.prompt_tokens
        shown_usage = EmbeddingsUsage(num_tokens, num_tokens)
        return fields, Scores(best, self._making.model.names[0], shown_usage, encoded.num_scores)

    def _read(
        self, body: bytes, read: Callable[[bytes], tuple[Fields, Scoring]]
    ) -> tuple[Fields, Scoring, EncodedPairs]:
        fields, scoring = read(body)
        check_model(scoring.model_name, self._making.model)
        return fields, scoring, self._encode(scoring)

    def _encode(self, scoring: Scoring) -> EncodedPairs:
        return encode_pairs(
            scoring, self._making, searches=self._searches, cuts_queries=self._cuts_queries
        )

    async def _values(
        self, request: Request, encoded: EncodedPairs, scoring: Scoring
    ) -> tuple[list[float], Usage]:
        files = self._making.model.sentences
        assert files is not None, "checked when the texts were encoded"
        if self._making.late is not None:
            return await self._making.scores(
                request, encoded.texts, encoded.places, priority=scoring.priority
            )
        says_yes = self._making.task == "score" and not self._making.vector_size
        ids = find_answer_ids(self._making.model) if says_yes else ()
        vectors, usage = await self._making.vectors(
            request, encoded.texts, priority=scoring.priority, token_ids=ids
        )
        if encoded.places:
            return await self._making.write(
                vectors, partial(compute_cosines, files, encoded.places)
            ), usage
        logits = compute_relevance(vectors) if ids else vectors
        values: list[float] = activate_logits(logits, files, activates=scoring.activates)[
            :, 0
        ].tolist()
        return values, usage


def compute_cosines(
    files: SentenceFiles, places: Sequence[tuple[int, int]], vectors: NDArray[np.float32]
) -> list[float]:
    """Returns the cosine of each pair; `places` are pairs of rows of `vectors`."""
    unit = finish_vectors(vectors, files, dimensions=None, normalises=True)
    firsts, seconds = (unit[[place[side] for place in places]] for side in (0, 1))
    values: list[float] = np.sum(firsts * seconds, axis=1).tolist()
    return values


def find_answer_ids(model: ServedModel) -> tuple[int, int]:
    """Returns the token ids of yes and no.

    Raises InvalidRequest if the model has no such tokens, or scores by other tokens.
    """
    name, files = model.names[0], model.sentences
    yes, no = (model.tokenizer.token_id(word) for word in ("yes", "no"))
    if yes is None or no is None:
        raise InvalidRequest(
            f"the model {name!r} has no tokens for yes and no to score with", param="model"
        )
    if files is not None and files.answer_ids not in (None, (yes, no)):
        complaint = (
            f"the model {name!r} scores by the tokens {files.answer_ids}, "
            "and only yes and no are supported"
        )
        raise InvalidRequest(complaint, param="model")
    return yes, no
