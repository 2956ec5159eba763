"""Answers /invocations for models that make embeddings or rank texts.

As DJL in LMI does, it answers one text with a list of numbers, a list of texts with a list of such
lists, and a pair with a list of one number. LMI's handler on vLLM answers one text with a list of
one vector; `--lmi-vector-lists` does the same here.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.lmi.content import read_content
from ouzel.api.lmi.vector_request import VectorInputs, read_vector_inputs
from ouzel.api.openai.embeddings import encode_inputs
from ouzel.api.ranking.encoded_pairs import Scoring
from ouzel.api.ranking.pair_scores import PairScores
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText, finish_vectors

Numbers = list[float]


class VectorInvocations:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)
        self._scores = PairScores(services, searches=True)
        self._always_lists = services.config.lmi_vector_lists

    async def answer(
        self, request: Request, body: bytes, *, content_type: str, adapter_beside_body: str
    ) -> Numbers | list[Numbers]:
        read = partial(
            self._read, body, content_type=content_type, adapter_beside_body=adapter_beside_body
        )
        inputs = await self._making.read(read, body)
        if inputs.pairs:
            _, scores = await self._scores.score_body(
                request, body, lambda _: (inputs, _scoring(inputs))
            )
            lists = [[value] for value in scores.values]
            return lists if inputs.is_list else lists[0]
        texts, files = await self._making.read(partial(self._encode, inputs), body)
        vectors, _ = await self._making.vectors(request, texts)
        written = await self._making.write(vectors, partial(_write, inputs, files))
        return written if inputs.is_list or self._always_lists else written[0]

    def _read(self, body: bytes, *, content_type: str, adapter_beside_body: str) -> VectorInputs:
        content = read_content(content_type, body)
        return read_vector_inputs(
            content, self._making.model, adapter_beside_body=adapter_beside_body
        )

    def _encode(self, inputs: VectorInputs) -> tuple[list[EncodedText], SentenceFiles]:
        encoder, files = self._making.check_task("embed")
        limit = encoder.limit(None, truncate=inputs.parameters.truncate, field="truncate")
        texts = [(text.field, text.text) for text in inputs.texts]
        return encode_inputs(encoder, texts, files.default_prompt, limit), files


def _scoring(inputs: VectorInputs) -> Scoring:
    return Scoring(model_name=None, pairs=inputs.pairs, truncate=inputs.parameters.truncate)


def _write(
    inputs: VectorInputs, files: SentenceFiles, vectors: NDArray[np.float32]
) -> list[Numbers]:
    finished = finish_vectors(
        vectors, files, dimensions=None, normalises=inputs.parameters.normalize
    )
    return [encode_numbers(vector) for vector in finished]
