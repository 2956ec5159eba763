"""Pairs of texts are scored by whatever the model is: a cross encoder, a decoder that says yes or no, or by the cosine
of the two vectors of a model that makes embeddings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_making import VectorMaking
from ouzel.api.openai.embedding_fields import VectorFields
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel, Usage
from ouzel.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finished_vectors, relevance, score_values
from ouzel.wire.options import check_model


class PairFields(VectorFields, kw_only=True):
    instruction: Annotated[
        str | None, Meta(description="What counts as an answer, for models that read one (Qwen3-Reranker).")
    ] = None
    use_activation: Annotated[
        bool | None, Meta(description="false: scores as the model gives them, of any size, rather than 0 to 1.")
    ] = None

    def scoring(self, pairs: Sequence["Pair"], *, max_document_tokens: int | None = None) -> "Scoring":
        return Scoring(
            model_name=self.model,
            pairs=pairs,
            truncate_prompt_tokens=self.truncate_prompt_tokens,
            truncate=self.truncate,
            max_document_tokens=max_document_tokens,
            instruction=self.instruction,
            activates=self.use_activation is not False,
            priority=self.priority or 0,
        )


Fields = TypeVar("Fields")


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    field: str  # its path in the body


Pair = tuple[Text, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The pairs to score, and how to score them; the same for the requests of all dialects."""

    model_name: str | None
    pairs: Sequence[Pair]
    truncate_prompt_tokens: int | None = None
    truncate: bool | None = None  # None: the request does not say
    keeps_end: bool = False  # of texts that are cut
    max_document_tokens: int | None = None  # cuts the second text of each pair, and no first text
    instruction: str | None = None
    activates: bool = True
    priority: int = 0


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    texts: list[EncodedText]  # one for each pair; where the model makes embeddings, all different texts
    places: list[tuple[int, int]]  # of the two texts of each pair among these; empty where a pair is one text


@dataclass(frozen=True, slots=True)
class Scores:
    values: list[float]  # of each pair
    model: str
    usage: EmbeddingsUsage


class PairScores:
    def __init__(self, services: Services, *, searches: bool = False) -> None:
        """`searches`: a pair is a query and a document, for which a model that makes embeddings may have prompts."""
        self._making = VectorMaking(services)
        self._searches = searches

    async def of_body(
        self, request: Request, body: bytes, read: Callable[[bytes], tuple[Fields, Scoring]]
    ) -> tuple[Fields, Scores]:
        """Scores the pairs that `read`, which is called in another thread, finds in the body."""
        fields, scoring, encoded = await self._making.read(partial(self._read, body, read), body)
        values, usage = await self._values(request, encoded, scoring)
        num_tokens = usage.prompt_tokens
        return fields, Scores(values, self._making.model.names[0], EmbeddingsUsage(num_tokens, num_tokens))

    def _read(
        self, body: bytes, read: Callable[[bytes], tuple[Fields, Scoring]]
    ) -> tuple[Fields, Scoring, EncodedPairs]:
        fields, scoring = read(body)
        check_model(scoring.model_name, self._making.model)
        return fields, scoring, self._encoded(scoring)

    def _encoded(self, scoring: Scoring) -> EncodedPairs:
        encoder, files = self._making.check_task("score", "embed")
        truncation = scoring.truncate_prompt_tokens
        limit = encoder.limit(truncation, truncate=scoring.truncate, field="truncate_prompt_tokens")
        limit = replace(limit, keeps_end=scoring.keeps_end)
        if self._making.task == "embed":
            if scoring.instruction is not None:
                raise InvalidRequest(": a model that makes embeddings takes no instruction", field="instruction")
            prompts = (files.query_prompt, files.document_prompt) if self._searches else (files.default_prompt,) * 2
            return _as_texts(scoring.pairs, encoder, (limit, _of_documents(limit, scoring)), prompts)
        if self._making.vector_size > 1:
            num_labels = self._making.vector_size
            raise InvalidRequest(f"the model has {num_labels} labels and no single score", param="model")
        if scoring.max_document_tokens is not None:
            limit = replace(limit, cuts=True, max_second_tokens=scoring.max_document_tokens)
        texts = [
            encoder.pair(
                first.text, second.text, limit, fields=(first.field, second.field), instruction=scoring.instruction
            )
            for first, second in scoring.pairs
        ]
        return EncodedPairs(texts, [])

    async def _values(self, request: Request, encoded: EncodedPairs, scoring: Scoring) -> tuple[list[float], Usage]:
        files = self._making.model.sentences
        assert files is not None, "checked when the texts were encoded"
        says_yes = self._making.task == "score" and not self._making.vector_size
        ids = answer_ids(self._making.model) if says_yes else ()
        vectors, usage = await self._making.vectors(request, encoded.texts, priority=scoring.priority, token_ids=ids)
        if encoded.places:
            return await self._making.written(vectors, partial(cosines, files, encoded.places)), usage
        logits = relevance(vectors) if ids else vectors
        values: list[float] = score_values(logits, files, activates=scoring.activates)[:, 0].tolist()
        return values, usage


def cosines(files: SentenceFiles, places: Sequence[tuple[int, int]], vectors: NDArray[np.float32]) -> list[float]:
    """Returns the cosine of the two vectors of each pair; `places` are pairs of rows of `vectors`."""
    unit = finished_vectors(vectors, files, dimensions=None, normalises=True)
    firsts, seconds = (unit[[place[side] for place in places]] for side in (0, 1))
    values: list[float] = np.sum(firsts * seconds, axis=1).tolist()
    return values


def answer_ids(model: ServedModel) -> tuple[int, int]:
    """Returns the tokens of yes and no. Raises InvalidRequest where the model has none, or scores by others."""
    name, files = model.names[0], model.sentences
    yes, no = (model.tokenizer.token_id(word) for word in ("yes", "no"))
    if yes is None or no is None:
        raise InvalidRequest(f"the model {name!r} has no tokens for yes and no to score with", param="model")
    if files is not None and files.answer_ids not in (None, (yes, no)):
        complaint = f"the model {name!r} scores by the tokens {files.answer_ids}, and only yes and no are supported"
        raise InvalidRequest(complaint, param="model")
    return yes, no


def _of_documents(limit: TextLimit, scoring: Scoring) -> TextLimit:
    """Returns the limit of a document that is a text of its own, its prompt and special tokens included."""
    most = scoring.max_document_tokens
    return limit if most is None else replace(limit, cuts=True, max_tokens=min(most, limit.max_tokens))


def _as_texts(
    pairs: Sequence[Pair], encoder: TextEncoder, limits: tuple[TextLimit, TextLimit], prompts: tuple[str, str]
) -> EncodedPairs:
    """Each text is computed once, however many pairs it is in."""
    places: dict[tuple[str, TextLimit], int] = {}
    texts: list[EncodedText] = []

    def place_of(text: Text, prompt: str, limit: TextLimit) -> int:
        prompted = prompt + text.text
        key = prompted, limit
        if key not in places:
            places[key] = len(texts)
            texts.append(encoder.text(prompted, limit, field=text.field))
        return places[key]

    found = [
        (place_of(first, prompts[0], limits[0]), place_of(second, prompts[1], limits[1])) for first, second in pairs
    ]
    return EncodedPairs(texts, found)
