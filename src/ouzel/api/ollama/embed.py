"""Makes vectors of texts, all of the length 1: POST /api/embed, and the older /api/embeddings."""

import time
from functools import partial
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.http.exchange import get_exchange
from ouzel.api.ollama.answer import nanoseconds
from ouzel.api.ollama.keep_alive import apply_keep_alive
from ouzel.api.ollama.model_name import check_name, choose_to_embed
from ouzel.api.openai.embedding_fields import check_num_texts, text_paths
from ouzel.api.openai.embeddings import check_dimensions, encode_inputs
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finish_vectors
from ouzel.wire.decode import decode_body
from ouzel.wire.options import list_texts

_KeepAlive = Annotated[object, Meta(description="A hint: the model stays loaded.")]


class EmbedOptions(msgspec.Struct, kw_only=True):
    """The options for vectors. Sampling options change no vector, and are ignored."""

    num_ctx: (
        Annotated[
            int,
            Meta(ge=1, lt=2**31, description="Limit of a text in tokens; at most the model's."),
        ]
        | None
    ) = None


class OllamaEmbedRequest(msgspec.Struct, kw_only=True):
    model: Annotated[
        str | None, Meta(description="One of the served model names, with `:latest` or without.")
    ] = None
    input: Annotated[str | list[str], Meta(description="A text, or a list of texts.")] = ""
    truncate: Annotated[
        bool | None,
        Meta(description="true, the default, cuts long texts; false refuses them."),
    ] = None
    dimensions: (
        Annotated[int, Meta(ge=1, description="Keeps this number of first values.")] | None
    ) = None
    options: Annotated[EmbedOptions | None, Meta(description="Options for reading the texts.")] = (
        None
    )
    keep_alive: _KeepAlive = None


class OllamaEmbedAnswer(msgspec.Struct):
    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaEmbeddingsRequest(msgspec.Struct, kw_only=True):
    model: Annotated[
        str | None, Meta(description="One of the served model names, with `:latest` or without.")
    ] = None
    prompt: Annotated[str, Meta(description="A text.")] = ""
    options: Annotated[EmbedOptions | None, Meta(description="Options for reading the text.")] = (
        None
    )
    keep_alive: _KeepAlive = None


class OllamaEmbeddingsAnswer(msgspec.Struct):
    embedding: list[float]


class OllamaEmbedding:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)

    async def embed(self, request: Request, body: bytes) -> OllamaEmbedAnswer:
        """Makes vectors.

        Without a text the answer only shows that the model is served, as in Ollama.
        """
        fields, texts, files = await self._making.read(partial(self._read_several, body), body)
        begin_s = time.perf_counter()
        name = fields.model or self._making.model.names[0]
        embeddings: list[list[float]] = []
        num_tokens = 0
        if texts:
            vectors, usage = await self._making.vectors(request, texts)
            embeddings = await self._making.write(
                vectors, partial(_write, fields.dimensions, files)
            )
            num_tokens = usage.prompt_tokens
        now_s, arrival_s = time.perf_counter(), get_exchange(request.scope).arrival_s
        durations = nanoseconds(now_s - arrival_s), nanoseconds(begin_s - arrival_s)
        return OllamaEmbedAnswer(name, embeddings, *durations, num_tokens)

    async def embeddings(self, request: Request, body: bytes) -> OllamaEmbeddingsAnswer:
        text, files = await self._making.read(partial(self._read_one, body), body)
        if text is None:
            return OllamaEmbeddingsAnswer([])
        vectors, _ = await self._making.vectors(request, [text])
        return OllamaEmbeddingsAnswer(finish_vectors(vectors, files, dimensions=None)[0].tolist())

    def _read_several(
        self, body: bytes
    ) -> tuple[OllamaEmbedRequest, list[EncodedText], SentenceFiles]:
        fields = decode_body(body, OllamaEmbedRequest)
        check_name(fields.model, self._making.model.names)
        encoder, files = self._making.check_task("embed")
        check_dimensions(fields.dimensions, self._making.vector_size, files)
        texts = [] if fields.input in ("", []) else list_texts(fields.input)
        if texts:
            check_num_texts(texts, field="input")
        limit = _limit(encoder, fields.options, cuts=fields.truncate is not False)
        paths = text_paths(fields.input, field="input") if texts else []
        encoded = encode_inputs(
            encoder, zip(paths, texts, strict=True), files.default_prompt, limit
        )
        return fields, encoded, files

    def _read_one(self, body: bytes) -> tuple[EncodedText | None, SentenceFiles]:
        fields = decode_body(body, OllamaEmbeddingsRequest)
        check_name(fields.model, self._making.model.names)
        encoder, files = self._making.check_task("embed")
        if not fields.prompt:
            return None, files
        limit = _limit(encoder, fields.options, cuts=True)
        [encoded] = encode_inputs(encoder, [("prompt", fields.prompt)], files.default_prompt, limit)
        return encoded, files


def _limit(encoder: TextEncoder, options: EmbedOptions | None, *, cuts: bool) -> TextLimit:
    num_ctx = encoder.max_tokens if options is None else options.num_ctx or encoder.max_tokens
    return TextLimit(min(num_ctx, encoder.max_tokens), cuts=cuts, field="options.num_ctx")


def _write(
    dimensions: int | None, files: SentenceFiles, vectors: NDArray[np.float32]
) -> list[list[float]]:
    return list(
        map(encode_numbers, finish_vectors(vectors, files, dimensions=dimensions, normalises=True))
    )


OPERATIONS = (
    Operation(
        method="post",
        path="/api/embed",
        summary="Ollama: makes vectors of texts.",
        endpoint=lambda services: services.make_body_endpoint(OllamaEmbedding(services).embed),
        choice=choose_to_embed,
        bodies=(OllamaEmbedRequest,),
        answers=(OllamaEmbedAnswer,),
        own_tasks=frozenset({"embed"}),
        words="ollama",
        apply_keep_alive=apply_keep_alive,
    ),
    Operation(
        method="post",
        path="/api/embeddings",
        summary="Ollama: makes a vector of a text, in the older form.",
        endpoint=lambda services: services.make_body_endpoint(OllamaEmbedding(services).embeddings),
        choice=choose_to_embed,
        bodies=(OllamaEmbeddingsRequest,),
        answers=(OllamaEmbeddingsAnswer,),
        words="ollama",
        apply_keep_alive=apply_keep_alive,
    ),
)
