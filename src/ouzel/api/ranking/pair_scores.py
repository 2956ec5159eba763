"""Pairs of texts are scored by whatever the model is: a cross encoder, a decoder that says yes or no, or by the cosine
of the two vectors of a model that makes embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_making import VectorMaking
from ouzel.api.openai.embedding_fields import VectorFields
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel, Usage
from ouzel.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finished_vectors, relevance, score_values


@dataclass(frozen=True, slots=True)
class Pair:
    first: str
    second: str
    field: str  # the path of the second in the body


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    texts: list[EncodedText]  # one of each pair; of a model that makes embeddings, all texts
    places: list[tuple[int, int]]  # of the two texts of each pair among these; empty where a pair is one


class PairScores:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaking(services)

    @property
    def making(self) -> VectorMaking:
        return self._making

    def encode(self, pairs: Sequence[Pair], fields: VectorFields, instruction: str | None) -> EncodedPairs:
        """Raises InvalidRequest."""
        encoder, files = self._making.check_task("score", "embed")
        truncation = fields.truncate_prompt_tokens
        limit = encoder.limit(truncation, truncate=fields.truncate, field="truncate_prompt_tokens")
        if self._making.task == "embed":
            if instruction is not None:
                raise InvalidRequest(": a model that makes embeddings takes no instruction", field="instruction")
            return _as_texts(pairs, encoder, limit, files)
        if self._making.vector_size > 1:
            num_labels = self._making.vector_size
            raise InvalidRequest(f"the model has {num_labels} labels and no single score", param="model")
        texts = [
            encoder.pair(pair.first, pair.second, limit, field=pair.field, instruction=instruction) for pair in pairs
        ]
        return EncodedPairs(texts, [])

    async def scores(
        self, request: Request, encoded: EncodedPairs, *, priority: int, activates: bool
    ) -> tuple[list[float], Usage]:
        files = self._making.model.sentences
        assert files is not None, "checked when the texts were encoded"
        says_yes = self._making.task == "score" and not self._making.vector_size
        ids = answer_ids(self._making.model) if says_yes else ()
        vectors, usage = await self._making.vectors(request, encoded.texts, priority=priority, token_ids=ids)
        if encoded.places:
            unit = finished_vectors(vectors, files, dimensions=None, normalises=True)
            firsts, seconds = (unit[[place[side] for place in encoded.places]] for side in (0, 1))
            cosines: list[float] = np.sum(firsts * seconds, axis=1).tolist()
            return cosines, usage
        logits = relevance(vectors) if ids else vectors
        values: list[float] = score_values(logits, files, activates=activates)[:, 0].tolist()
        return values, usage


def answer_ids(model: ServedModel) -> tuple[int, int]:
    """Returns the tokens of yes and no. Raises InvalidRequest where the model has none."""
    ids = [model.tokenizer.token_id(word) for word in ("yes", "no")]
    yes, no = ids
    if yes is None or no is None:
        raise InvalidRequest(f"the model {model.names[0]!r} has no tokens for yes and no to score with", param="model")
    return yes, no


def _as_texts(pairs: Sequence[Pair], encoder: TextEncoder, limit: TextLimit, files: SentenceFiles) -> EncodedPairs:
    """Each text is computed once, however many pairs it is in."""
    places: dict[str, int] = {}
    texts: list[EncodedText] = []

    def place_of(text: str, field: str) -> int:
        if text not in places:
            places[text] = len(texts)
            texts.append(encoder.text(files.default_prompt + text, limit, field=field))
        return places[text]

    found = [(place_of(pair.first, pair.field), place_of(pair.second, pair.field)) for pair in pairs]
    return EncodedPairs(texts, found)
