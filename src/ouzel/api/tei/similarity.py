"""Compares a sentence with others: POST /similarity. The answer is the list of cosines."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.api.openai.embedding_fields import check_num_texts, text_paths
from ouzel.api.openai.embeddings import encode_inputs, find_prompt
from ouzel.api.ranking.pair_scores import compute_cosines
from ouzel.api.tei.fields import CutFields, PromptName
from ouzel.api.tei.shape import choose_by_work
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText
from ouzel.wire.decode import decode_body
from ouzel.wire.model_name import ModelName
from ouzel.wire.options import check_model


class Sentences(msgspec.Struct):
    source_sentence: Annotated[str, Meta(description="The sentence to compare the others with.")]
    sentences: Annotated[
        list[str], Meta(min_length=1, description="The other sentences; 2047 at most.")
    ]


class SimilarityParameters(CutFields, kw_only=True):
    prompt_name: PromptName | None = None


class SimilarityRequest(msgspec.Struct, kw_only=True):
    inputs: Annotated[Sentences, Meta(description="The sentences to compare.")]
    model: ModelName = None
    parameters: Annotated[
        SimilarityParameters | None, Meta(description="Options for reading the sentences.")
    ] = None


class Similarity:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)

    async def answer(self, request: Request, body: bytes) -> list[float]:
        texts, files = await self._making.read(partial(self._read, body), body)
        vectors, _ = await self._making.vectors(request, texts)
        # Each other sentence is compared with the first.
        others = [(0, place) for place in range(1, len(texts))]
        return await self._making.write(vectors, partial(compute_cosines, files, others))

    def _read(self, body: bytes) -> tuple[list[EncodedText], SentenceFiles]:
        fields = decode_body(body, SimilarityRequest)
        check_model(fields.model, self._making.model)
        encoder, files = self._making.check_task("embed")
        sentences, parameters = fields.inputs.sentences, fields.parameters or SimilarityParameters()
        check_num_texts([fields.inputs.source_sentence, *sentences], field="inputs.sentences")
        paths = ["inputs.source_sentence", *text_paths(sentences, field="inputs.sentences")]
        inputs = list(zip(paths, [fields.inputs.source_sentence, *sentences], strict=True))
        prompt = find_prompt(parameters.prompt_name, files, field="parameters.prompt_name")
        return encode_inputs(encoder, inputs, prompt, parameters.limit(encoder)), files


OPERATIONS = (
    Operation(
        method="post",
        path="/similarity",
        summary="TEI: computes the similarity of a sentence to others.",
        endpoint=lambda services: services.make_body_endpoint(Similarity(services).answer),
        choice=choose_by_work,
        bodies=(SimilarityRequest,),
        answers=(list[float],),
        words="tei",
    ),
)
