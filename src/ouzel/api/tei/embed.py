"""Makes a vector of each text: POST /embed. The answer is the list of the vectors."""

from functools import partial
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.openai.embedding_fields import InputField, read_inputs
from ouzel.api.openai.embeddings import check_dimensions, encode_inputs, find_prompt
from ouzel.api.tei.fields import PromptName, TeiFields
from ouzel.api.tei.shape import choose_by_work
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText, finish_vectors
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_model


class TeiEmbedRequest(TeiFields, kw_only=True):
    inputs: InputField
    normalize: Annotated[
        bool | None, Meta(description="Scales vectors to the length 1; default: true.")
    ] = None
    prompt_name: PromptName | None = None
    dimensions: (
        Annotated[
            int,
            Meta(ge=1, description="Keeps this number of first values, scaled to the length 1."),
        ]
        | None
    ) = None


class Embed:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)

    async def answer(self, request: Request, body: bytes) -> list[list[float]]:
        fields, texts, files = await self._making.read(partial(self._read, body), body)
        vectors, _ = await self._making.vectors(request, texts)
        return await self._making.write(vectors, partial(_write, fields, files))

    def _read(self, body: bytes) -> tuple[TeiEmbedRequest, list[EncodedText], SentenceFiles]:
        fields = decode_body(body, TeiEmbedRequest)
        check_model(fields.model, self._making.model)
        encoder, files = self._making.check_task("embed")
        check_dimensions(fields.dimensions, self._making.vector_size, files)
        prompt = find_prompt(fields.prompt_name, files)
        inputs = read_inputs(fields.inputs, field="inputs")
        return fields, encode_inputs(encoder, inputs, prompt, fields.limit(encoder)), files


def _write(
    fields: TeiEmbedRequest, files: SentenceFiles, vectors: NDArray[np.float32]
) -> list[list[float]]:
    normalises = fields.normalize is not False
    finished = finish_vectors(vectors, files, dimensions=fields.dimensions, normalises=normalises)
    return [encode_numbers(vector) for vector in finished]


OPERATIONS = (
    Operation(
        method="post",
        path="/embed",
        summary="TEI: makes a vector of each text.",
        endpoint=lambda services: services.make_body_endpoint(Embed(services).answer),
        choice=choose_by_work,
        bodies=(TeiEmbedRequest,),
        answers=(list[list[float]],),
        words="tei",
    ),
)
