"""Makes a vector of each text, in the types of the request: POST /v2/embed and /v1/embed.

`input_type` chooses one of the prompts that the checkpoint's files have for queries, documents and
tasks.
"""

import base64
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal, cast

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.cohere.input_type import choose_prompt
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import Operation, StructType
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.http.exchange import get_exchange
from ouzel.api.openai.embedding_fields import check_num_texts, text_paths
from ouzel.api.openai.embeddings import check_dimensions, encode_inputs
from ouzel.api.ranking.billing import CohereMeta, cohere_meta
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finish_vectors
from ouzel.wire.decode import decode_body
from ouzel.wire.model_name import ModelName
from ouzel.wire.options import check_model

EmbeddingType = Literal["float", "base64", "binary", "ubinary"]


class TextPart(msgspec.Struct, tag="text"):
    text: Annotated[str, Meta(description="The text.")]


class CohereInput(msgspec.Struct):
    content: Annotated[
        list[TextPart], Meta(min_length=1, max_length=1, description="One part, of the type text.")
    ]


class CohereEmbedRequest(msgspec.Struct, kw_only=True):
    model: ModelName = None
    texts: (
        Annotated[list[str], Meta(min_length=1, description="The texts; 2048 at most.")] | None
    ) = None
    inputs: (
        Annotated[list[CohereInput], Meta(min_length=1, description="The texts, in parts.")] | None
    ) = None
    images: Annotated[
        list[str] | None, Meta(description="Only empty: models that make embeddings read texts.")
    ] = None
    input_type: Annotated[
        str | None,
        Meta(
            description="search_query, search_document, classification, clustering, or the name of "
            "a model's prompt."
        ),
    ] = None
    embedding_types: (
        Annotated[
            list[EmbeddingType],
            Meta(min_length=1, description="Forms of each vector; default: float."),
        ]
        | None
    ) = None
    truncate: Annotated[
        Literal["NONE", "START", "END"] | None,
        Meta(
            description="The side on which longer texts lose tokens; NONE refuses them. Default: "
            "END."
        ),
    ] = None
    max_tokens: (
        Annotated[
            int, Meta(ge=1, lt=2**31, description="Limit of each text, special tokens included.")
        ]
        | None
    ) = None
    output_dimension: (
        Annotated[int, Meta(ge=1, description="Keeps this number of first values.")] | None
    ) = None
    priority: (
        Annotated[
            int,
            Meta(ge=-(2**31), lt=2**31, description="Requests with a smaller number run first."),
        ]
        | None
    ) = None


class EmbeddingsByType(msgspec.Struct):
    float_: list[list[float]] | UnsetType = msgspec.field(default=UNSET, name="float")
    base64: list[str] | UnsetType = UNSET
    binary: list[list[int]] | UnsetType = UNSET
    ubinary: list[list[int]] | UnsetType = UNSET


class CohereEmbeddings(msgspec.Struct, tag_field="response_type", tag="embeddings_by_type"):
    id: str
    embeddings: EmbeddingsByType
    texts: list[str]
    meta: CohereMeta


class CohereFloatEmbeddings(msgspec.Struct, tag_field="response_type", tag="embeddings_floats"):
    """The answer of the older API to a request without types."""

    id: str
    embeddings: list[list[float]]
    texts: list[str]
    meta: CohereMeta


class CohereEmbed:
    def __init__(self, services: Services, *, version: Literal["1", "2"]) -> None:
        self._making = VectorMaker(services)
        self._version = version

    async def answer(
        self, request: Request, body: bytes
    ) -> CohereEmbeddings | CohereFloatEmbeddings:
        fields, texts, encoded, files = await self._making.read(partial(self._read, body), body)
        vectors, usage = await self._making.vectors(request, encoded, priority=fields.priority or 0)
        finish = partial(finish_vectors, files=files, dimensions=fields.output_dimension)
        answer_id = get_exchange(request.scope).request_id
        meta = cohere_meta(self._version, usage.prompt_tokens)
        if self._version == "1" and fields.embedding_types is None:
            floats = await self._making.write(
                vectors, lambda vectors: _write_floats(finish(vectors))
            )
            return CohereFloatEmbeddings(answer_id, floats, texts, meta)
        types = fields.embedding_types or ["float"]
        by_type = await self._making.write(
            vectors, lambda vectors: _by_type(finish(vectors), types)
        )
        return CohereEmbeddings(answer_id, by_type, texts, meta)

    def _read(
        self, body: bytes
    ) -> tuple[CohereEmbedRequest, list[str], list[EncodedText], SentenceFiles]:
        fields = decode_body(body, CohereEmbedRequest)
        check_model(fields.model, self._making.model)
        encoder, files = self._making.check_task("embed")
        try:
            check_dimensions(fields.output_dimension, self._making.vector_size, files)
        except InvalidRequest as error:
            raise error.at("output_dimension") from error
        inputs = _inputs(fields)
        prompt = choose_prompt(fields.input_type, files)
        texts = [text for _, text in inputs]
        return (
            fields,
            texts,
            encode_inputs(encoder, inputs, prompt, _limit(fields, encoder)),
            files,
        )


def _inputs(fields: CohereEmbedRequest) -> list[tuple[str, str]]:
    """Returns a pair of path and text for each text in the body."""
    if fields.images:
        limit = "must not be given: models that make embeddings read texts only"
        raise InvalidRequest(f"{limit}, given {len(fields.images)} images", field="images")
    if (fields.texts is None) is (fields.inputs is None):
        given = "neither" if fields.texts is None else "both"
        raise InvalidRequest(f"one of texts and inputs is required, given {given}", param="texts")
    field, texts = "texts", fields.texts
    paths = text_paths(fields.texts or [], field="texts")
    if fields.inputs is not None:
        field, texts = "inputs", [each.content[0].text for each in fields.inputs]
        paths = [f"inputs[{index}].content[0].text" for index in range(len(fields.inputs))]
    assert texts is not None, "one of texts and inputs is set"
    check_num_texts(texts, field=field)
    return list(zip(paths, texts, strict=True))


def _limit(fields: CohereEmbedRequest, encoder: TextEncoder) -> TextLimit:
    max_tokens = min(fields.max_tokens or encoder.max_tokens, encoder.max_tokens)
    return TextLimit(
        max_tokens,
        cuts=fields.truncate != "NONE",
        keeps_end=fields.truncate == "START",
        field="max_tokens",
    )


def _by_type(vectors: NDArray[np.float32], types: Sequence[EmbeddingType]) -> EmbeddingsByType:
    return EmbeddingsByType(
        float_=_write_floats(vectors) if "float" in types else UNSET,
        base64=_base64(vectors) if "base64" in types else UNSET,
        binary=_pack_signed(vectors) if "binary" in types else UNSET,
        ubinary=_pack_unsigned(vectors) if "ubinary" in types else UNSET,
    )


def _write_floats(vectors: NDArray[np.float32]) -> list[list[float]]:
    return [encode_numbers(vector) for vector in vectors]


def _base64(vectors: NDArray[np.float32]) -> list[str]:
    return [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]


def _pack_unsigned(vectors: NDArray[np.float32]) -> list[list[int]]:
    """Packs one bit per value into bytes; the bit of a value above zero is 1."""
    return cast(list[list[int]], np.packbits(vectors > 0, axis=1).tolist())


def _pack_signed(vectors: NDArray[np.float32]) -> list[list[int]]:
    """Packs the bits like `_pack_unsigned` and subtracts 128 from each byte, as Cohere does."""
    return cast(list[list[int]], (np.packbits(vectors > 0, axis=1).astype(np.int16) - 128).tolist())


def _operation(version: Literal["1", "2"], answers: tuple[StructType, ...]) -> Operation:
    return Operation(
        method="post",
        path=f"/v{version}/embed",
        summary="Cohere: makes a vector of each text, in several types.",
        endpoint=lambda services: services.make_body_endpoint(
            CohereEmbed(services, version=version).answer
        ),
        choice=choose_for("embed"),
        bodies=(CohereEmbedRequest,),
        answers=answers,
        words="cohere",
    )


OPERATIONS = (
    _operation("2", (CohereEmbeddings,)),
    _operation("1", (CohereFloatEmbeddings, CohereEmbeddings)),
)
