"""Pairs of texts are scored by whatever the model is: a cross encoder, a decoder that says yes or no, or by the cosine
of the two vectors of a model that makes embeddings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_making import VectorMaking
from ouzel.api.openai.embedding_fields import VectorFields
from ouzel.api.openai.embeddings import EmbeddingsUsage
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel, Usage
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finished_vectors, relevance, score_values
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_model


class PairFields(VectorFields, kw_only=True):
    instruction: Annotated[
        str | None, Meta(description="What counts as an answer, for models that read one (Qwen3-Reranker).")
    ] = None
    use_activation: Annotated[
        bool | None, Meta(description="false: scores as the model gives them, of any size, rather than 0 to 1.")
    ] = None


Fields = TypeVar("Fields", bound=PairFields)


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    field: str  # its path in the body


Pair = tuple[Text, Text]


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    texts: list[EncodedText]  # one of each pair; of a model that makes embeddings, all texts
    places: list[tuple[int, int]]  # of the two texts of each pair among these; empty where a pair is one


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
        self, request: Request, body: bytes, kind: type[Fields], pairs_of: Callable[[Fields], list[Pair]]
    ) -> tuple[Fields, Scores]:
        fields, encoded = await self._making.read(partial(self._read, body, kind, pairs_of), body)
        values, usage = await self._values(request, encoded, fields)
        num_tokens = usage.prompt_tokens
        return fields, Scores(values, self._making.model.names[0], EmbeddingsUsage(num_tokens, num_tokens))

    def _read(
        self, body: bytes, kind: type[Fields], pairs_of: Callable[[Fields], list[Pair]]
    ) -> tuple[Fields, EncodedPairs]:
        fields = decode_body(body, kind)
        check_model(fields.model, self._making.model)
        return fields, self._encoded(pairs_of(fields), fields)

    def _encoded(self, pairs: Sequence[Pair], fields: PairFields) -> EncodedPairs:
        """Raises InvalidRequest."""
        encoder, files = self._making.check_task("score", "embed")
        truncation = fields.truncate_prompt_tokens
        limit = encoder.limit(truncation, truncate=fields.truncate, field="truncate_prompt_tokens")
        if self._making.task == "embed":
            if fields.instruction is not None:
                raise InvalidRequest(": a model that makes embeddings takes no instruction", field="instruction")
            prompts = (files.query_prompt, files.document_prompt) if self._searches else (files.default_prompt,) * 2
            return _as_texts(pairs, encoder, limit, prompts)
        if self._making.vector_size > 1:
            num_labels = self._making.vector_size
            raise InvalidRequest(f"the model has {num_labels} labels and no single score", param="model")
        texts = [
            encoder.pair(
                first.text, second.text, limit, fields=(first.field, second.field), instruction=fields.instruction
            )
            for first, second in pairs
        ]
        return EncodedPairs(texts, [])

    async def _values(self, request: Request, encoded: EncodedPairs, fields: PairFields) -> tuple[list[float], Usage]:
        files = self._making.model.sentences
        assert files is not None, "checked when the texts were encoded"
        says_yes = self._making.task == "score" and not self._making.vector_size
        ids = answer_ids(self._making.model) if says_yes else ()
        vectors, usage = await self._making.vectors(
            request, encoded.texts, priority=fields.priority or 0, token_ids=ids
        )
        if encoded.places:
            unit = finished_vectors(vectors, files, dimensions=None, normalises=True)
            firsts, seconds = (unit[[place[side] for place in encoded.places]] for side in (0, 1))
            cosines: list[float] = np.sum(firsts * seconds, axis=1).tolist()
            return cosines, usage
        logits = relevance(vectors) if ids else vectors
        values: list[float] = score_values(logits, files, activates=fields.use_activation is not False)[:, 0].tolist()
        return values, usage


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


def _as_texts(pairs: Sequence[Pair], encoder: TextEncoder, limit: TextLimit, prompts: tuple[str, str]) -> EncodedPairs:
    """Each text is computed once, however many pairs it is in."""
    places: dict[str, int] = {}
    texts: list[EncodedText] = []

    def place_of(text: Text, prompt: str) -> int:
        prompted = prompt + text.text
        if prompted not in places:
            places[prompted] = len(texts)
            texts.append(encoder.text(prompted, limit, field=text.field))
        return places[prompted]

    found = [(place_of(first, prompts[0]), place_of(second, prompts[1])) for first, second in pairs]
    return EncodedPairs(texts, found)
