"""Makes vectors of texts or of their tokens, and weights of tokens, as vLLM does: POST /pooling."""

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker, encode_numbers
from ouzel.api.http.exchange import get_exchange
from ouzel.api.openai.embedding_fields import InputField, OneInput, VectorFields, read_inputs
from ouzel.api.openai.embeddings import EmbeddingsUsage, check_dimensions, encode_inputs
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.pooling import VectorForm
from ouzel.vectors import (
    EncodedText,
    LateTexts,
    TextEncoder,
    TextLimit,
    TokenWeights,
    finish_vectors,
    keep_rows,
)
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_model

PoolingTask = Literal["embed", "token_embed", "token_classify", "lexical_weights"]
Vectors = NDArray[np.float32]
# The answer for a text: a vector, a vector of each token, weights by token id, or base64.
Data = list[float | list[float]] | dict[str, float] | str

_FORMS: dict[PoolingTask, VectorForm] = {
    "embed": "text",
    "token_embed": "tokens",
    "token_classify": "weights",
    "lexical_weights": "weights",
}
# Limit of a request with vectors of tokens: 128 MiB as float32, and five times as many as JSON.
_MAX_VALUES = 2**25


class PoolingRequest(VectorFields, kw_only=True):
    input: InputField
    task: Annotated[
        str | None,
        Meta(
            description="embed: a vector of each text. token_embed: a vector of each token. "
            "token_classify: a weight of each token between the special tokens at both ends "
            "(bge-m3). lexical_weights, an addition of Ouzel: the largest weight of each token by "
            "its id. Default: embed, or token_embed if the model makes no vector of a whole text.",
            extra_json_schema={"enum": [*_FORMS, None]},
        ),
    ] = None
    encoding_format: Annotated[
        Literal["float", "base64"] | None,
        Meta(description="base64: the numbers one after the other, rows first."),
    ] = None
    dimensions: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="Keeps this number of first values of each vector, before it is "
                "scaled to the length 1; for the tasks embed and token_embed.",
            ),
        ]
        | None
    ) = None
    embed_dtype: Annotated[
        Literal["float32", "float16"] | None, Meta(description="The type of numbers in base64.")
    ] = None
    endianness: Annotated[
        Literal["native", "little", "big"] | None,
        Meta(description="The order of bytes in base64; native is little."),
    ] = None
    use_activation: Annotated[
        bool | None,
        Meta(
            description="false: vectors keep their length, and weights may be negative. Default: "
            "vectors of tokens have the length 1, vectors of texts as the model's files say."
        ),
    ] = None
    add_special_tokens: Annotated[
        bool | None,
        Meta(description="Adds the tokenizer's special tokens around a text; default: true."),
    ] = None
    truncation_side: Annotated[
        Literal["left", "right"] | None, Meta(description="The side at which long texts are cut.")
    ] = None
    input_type: Annotated[
        Literal["query", "document"] | None,
        Meta(
            description="An addition of Ouzel: treats the texts as queries or documents, with the "
            "model's prompts, and with the markers, expansion tokens and skip list of a model of "
            "late interaction. Default: neither, as in vLLM."
        ),
    ] = None


class PoolingObject(msgspec.Struct, tag_field="object", tag="pooling"):
    index: int
    data: Data


class PoolingList(msgspec.Struct, tag_field="object", tag="list"):
    id: str
    created: int
    model: str
    data: list[PoolingObject]
    usage: EmbeddingsUsage


@dataclass(frozen=True, slots=True)
class _Work:
    fields: PoolingRequest
    task: PoolingTask
    texts: list[EncodedText]
    files: SentenceFiles


class PoolingEndpoint:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)
        self._weights = TokenWeights(services.model.tokenizer)

    async def answer(self, request: Request, body: bytes) -> PoolingList:
        work = await self._making.read(partial(self._read, body), body)
        results, usage = await self._making.results(
            request, work.texts, form=_FORMS[work.task], priority=work.fields.priority or 0
        )
        data = await self._making.write_all(results, partial(self._write, work))
        num_tokens = usage.prompt_tokens
        return PoolingList(
            id=f"pool-{get_exchange(request.scope).request_id}",
            created=int(time.time()),
            model=self._making.model.names[0],
            data=data,
            usage=EmbeddingsUsage(num_tokens, num_tokens),
        )

    def _read(self, body: bytes) -> _Work:
        fields = decode_body(body, PoolingRequest)
        check_model(fields.model, self._making.model)
        encoder, files = self._making.check_task("embed", form=None)
        task = choose_task(fields.task, self._making.model.engine.info.forms)
        if task == "lexical_weights" and fields.encoding_format == "base64":
            raise InvalidRequest(
                "must be float for the task lexical_weights, given base64", field="encoding_format"
            )
        self._check_dimensions(fields.dimensions, task, files)
        limit = encoder.limit(
            fields.truncate_prompt_tokens, truncate=fields.truncate, field="truncate_prompt_tokens"
        )
        limit = replace(limit, keeps_end=fields.truncation_side == "left")
        late = self._making.late if task == "token_embed" else None
        texts = _encode(fields, encoder, late, files, limit)
        if task == "token_embed":
            _check_size(texts, self._making.model.engine.info.token_vector_size)
        return _Work(fields, task, texts, files)

    def _check_dimensions(
        self, dimensions: int | None, task: PoolingTask, files: SentenceFiles
    ) -> None:
        """Raises InvalidRequest for a number of values that the task's vectors cannot have."""
        if dimensions is None:
            return
        if _FORMS[task] == "weights":
            raise InvalidRequest(
                f"must be left out for the task {task}, whose results are single numbers, "
                f"given {dimensions}",
                field="dimensions",
            )
        is_whole = _FORMS[task] == "text"
        info = self._making.model.engine.info
        size = self._making.vector_size if is_whole else info.token_vector_size
        check_dimensions(dimensions, size, files)

    def _write(self, work: _Work, results: Sequence[Vectors]) -> list[PoolingObject]:
        finish = self._choose_finish(work)
        write = _choose_writer(work.fields)
        objects = []
        for index, (text, result) in enumerate(zip(work.texts, results, strict=True)):
            if work.task == "lexical_weights":
                weights = self._weights.gather(text.token_ids, result)
                objects.append(PoolingObject(index, weights))
            else:
                objects.append(PoolingObject(index, write(finish(text, result))))
        return objects

    def _choose_finish(self, work: _Work) -> Callable[[EncodedText, Vectors], Vectors]:
        activates, dimensions = work.fields.use_activation, work.fields.dimensions
        if work.task == "embed":
            return lambda _, vector: finish_vectors(
                vector[None], work.files, dimensions=dimensions, normalises=activates
            )[0]
        if work.task == "token_embed":
            return lambda text, rows: keep_rows(
                text, rows[:, :dimensions], normalises=activates is not False
            )
        return lambda text, weights: self._weights.drop_frame(
            text.token_ids, weights if activates is False else np.maximum(weights, 0)
        )


def choose_task(named: str | None, forms: Sequence[VectorForm]) -> PoolingTask:
    """Returns the named task, or the model's default. Raises InvalidRequest."""
    own = [task for task, form in _FORMS.items() if form in forms]
    if named is None:
        return own[0]
    for task in own:
        if task == named:
            return task
    raise InvalidRequest(
        f"must be one of the model's tasks ({', '.join(own)}), given {named[:100]!r}", field="task"
    )


def _encode(
    fields: PoolingRequest,
    encoder: TextEncoder,
    late: LateTexts | None,
    files: SentenceFiles,
    limit: TextLimit,
) -> list[EncodedText]:
    inputs = read_inputs(fields.input)
    if late is not None and fields.input_type is not None:
        return [_encode_role(fields, late, path, entry, limit) for path, entry in inputs]
    prompt = files.default_prompt
    if fields.input_type is not None:
        prompt = files.query_prompt if fields.input_type == "query" else files.document_prompt
    special = fields.add_special_tokens is not False
    texts = encode_inputs(encoder, inputs, prompt, limit, special=special)
    return texts if late is None else [late.plain(text) for text in texts]


def _encode_role(
    fields: PoolingRequest, late: LateTexts, path: str, entry: OneInput, limit: TextLimit
) -> EncodedText:
    """Encodes a query or a document of a model of late interaction."""
    if not isinstance(entry, str):
        raise InvalidRequest(
            "must be a text beside input_type, which adds tokens, given token ids", field=path
        )
    if fields.add_special_tokens is False:
        raise InvalidRequest(
            "must be true beside input_type, given false", field="add_special_tokens"
        )
    if fields.input_type == "query":
        return late.query(entry, limit, field=path, truncate=fields.truncate)
    return late.document(entry, limit, field=path)


def _check_size(texts: Sequence[EncodedText], vector_size: int) -> None:
    num_tokens = sum(len(text.token_ids) for text in texts)
    if num_tokens * vector_size > _MAX_VALUES:
        raise InvalidRequest(
            f"must come to <= {_MAX_VALUES // vector_size} tokens in all, with {vector_size} "
            f"numbers for each, given {num_tokens}",
            field="input",
        )


def _choose_writer(fields: PoolingRequest) -> Callable[[Vectors], Data]:
    if fields.encoding_format == "base64":
        order = ">" if fields.endianness == "big" else "<"
        kind = f"{order}f{2 if fields.embed_dtype == 'float16' else 4}"
        return lambda values: base64.b64encode(values.astype(kind).tobytes()).decode()
    return _write_numbers


def _write_numbers(values: Vectors) -> Data:
    if values.ndim == 1:
        return cast(Data, encode_numbers(values))
    return [encode_numbers(row) for row in values]


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/pooling",
        prefixes=("", *PREFIXES),
        summary="Makes vectors of texts or of their tokens, or weights of tokens, as vLLM does.",
        endpoint=lambda services: services.make_body_endpoint(PoolingEndpoint(services).answer),
        choice=choose_for("embed"),
        bodies=(PoolingRequest,),
        answers=(PoolingList,),
        own_tasks=frozenset({"embed"}),
    ),
)
