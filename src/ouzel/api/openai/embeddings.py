"""Makes a vector of each text, or of a chat, as the model's sentence-transformers files say: POST
/embeddings.
"""

import base64
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.openai.embedding_chats import ChatOrInput, check_inputs, encode_chat
from ouzel.api.openai.embedding_fields import OneInput, read_inputs
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.checkpoint.text_tasks import TextPrompt
from ouzel.errors import InvalidRequest
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, finish_vectors
from ouzel.wire.aliases import restore_client_name
from ouzel.wire.decode import decode_body, parse_object
from ouzel.wire.options import check_model


class EmbeddingsRequest(ChatOrInput, kw_only=True):
    encoding_format: Annotated[
        Literal["float", "base64"] | None,
        Meta(description="base64: float32 numbers, little-endian."),
    ] = None
    dimensions: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="Keeps this number of first values, scaled to the length 1; 0: all.",
            ),
        ]
        | None
    ) = None
    normalize: Annotated[
        bool | None,
        Meta(
            description="Scales vectors to the length 1, or does not; default: as the model's "
            "files say."
        ),
    ] = None


class EmbeddingObject(msgspec.Struct, tag_field="object", tag="embedding"):
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(msgspec.Struct):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(msgspec.Struct, tag_field="object", tag="list"):
    data: list[EmbeddingObject]
    model: str
    usage: EmbeddingsUsage


class Embeddings:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)

    async def answer(self, request: Request, body: bytes) -> EmbeddingList:
        fields, texts, files = await self._making.read(partial(self._read, body), body)
        vectors, usage = await self._making.vectors(request, texts, priority=fields.priority or 0)
        data = await self._making.write(vectors, partial(_write, fields, files))
        num_tokens = usage.prompt_tokens
        return EmbeddingList(
            data, self._making.model.names[0], EmbeddingsUsage(num_tokens, num_tokens)
        )

    def _read(self, body: bytes) -> tuple[EmbeddingsRequest, list[EncodedText], SentenceFiles]:
        fields = decode_body(body, EmbeddingsRequest)
        try:
            return fields, *self._encode(fields)
        except InvalidRequest as error:
            raise restore_client_name(error, partial(parse_object, body)) from error.__cause__

    def _encode(self, fields: EmbeddingsRequest) -> tuple[list[EncodedText], SentenceFiles]:
        check_model(fields.model, self._making.model)
        encoder, files = self._making.check_task("embed")
        # infinity's clients send 0 if their user sets no number
        fields.dimensions = fields.dimensions or None
        check_dimensions(fields.dimensions, self._making.vector_size, files)
        check_inputs(fields)
        if fields.input is None:
            return [encode_chat(fields, self._making.model, files)], files
        prompt = choose_task(fields.task, fields.prompt_name, files)
        truncation = fields.truncate_prompt_tokens
        limit = encoder.limit(truncation, truncate=fields.truncate, field="truncate_prompt_tokens")
        special = fields.add_special_tokens is not False
        return encode_inputs(
            encoder, read_inputs(fields.input), prompt, limit, special=special
        ), files


def encode_inputs(
    encoder: TextEncoder,
    inputs: Iterable[tuple[str, OneInput]],
    prompt: TextPrompt,
    limit: TextLimit,
    *,
    special: bool = True,
) -> list[EncodedText]:
    """Encodes pairs of a path in the body and an input; `prompt` precedes each text."""
    texts = [
        _encode(encoder, path, entry, prompt.text, limit, special=special) for path, entry in inputs
    ]
    return [replace(text, task=prompt.task) for text in texts] if prompt.task else texts


def _encode(
    encoder: TextEncoder,
    path: str,
    entry: OneInput,
    prompt: str,
    limit: TextLimit,
    *,
    special: bool,
) -> EncodedText:
    """Encodes a text, or checks token ids, which stay unchanged."""
    if isinstance(entry, str):
        return encoder.text(entry, limit, field=path, prompt=prompt, add_special_tokens=special)
    return encoder.token_ids(entry, limit, field=path)


def check_dimensions(dimensions: int | None, vector_size: int, files: SentenceFiles) -> None:
    """Raises InvalidRequest for too many dimensions, or for fewer if the model forbids it."""
    if dimensions is None or dimensions == vector_size:
        return
    if dimensions > vector_size:
        raise InvalidRequest(f"must be <= {vector_size}, given {dimensions}", field="dimensions")
    if not files.is_matryoshka:
        raise InvalidRequest(
            f"must be {vector_size}, given {dimensions}: the model's files do not say that it was "
            "trained for fewer (see --matryoshka)",
            field="dimensions",
        )


def choose_task(task: str | None, prompt_name: str | None, files: SentenceFiles) -> TextPrompt:
    """Returns the prompt of the task, or the prompt of that name for the task."""
    if task is None:
        return find_prompt(prompt_name, files)
    if task not in files.tasks:
        names = ", ".join(files.tasks) or "it has none"
        raise InvalidRequest(
            f"must be one of the model's tasks ({names}), given {task[:100]!r}", field="task"
        )
    return replace(find_prompt(prompt_name or task, files), task=files.find_task(task))


def find_prompt(
    name: str | None, files: SentenceFiles, *, field: str = "prompt_name"
) -> TextPrompt:
    if name is None:
        return files.default_prompt
    if name not in files.prompts:
        names = ", ".join(files.prompts) or "it has none"
        raise InvalidRequest(
            f"must be one of the model's prompts ({names}), given {name[:100]!r}", field=field
        )
    return files.named_prompt(name)


def _write(
    fields: EmbeddingsRequest, files: SentenceFiles, vectors: NDArray[np.float32]
) -> list[EmbeddingObject]:
    finished = finish_vectors(
        vectors, files, dimensions=fields.dimensions, normalises=fields.normalize
    )
    write = _base64 if fields.encoding_format == "base64" else encode_numbers
    return [EmbeddingObject(index, write(vector)) for index, vector in enumerate(finished)]


def _base64(vector: NDArray[np.float32]) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/embeddings",
        prefixes=PREFIXES,
        summary="Makes a vector of each text, or of a chat with pictures; for embedding models.",
        endpoint=lambda services: services.make_body_endpoint(Embeddings(services).answer),
        choice=choose_for("embed"),
        bodies=(EmbeddingsRequest,),
        answers=(EmbeddingList,),
        own_tasks=frozenset({"embed"}),
    ),
)
