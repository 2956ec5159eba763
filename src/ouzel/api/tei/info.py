"""Describes the served model in TEI's terms: GET /info.

Of several models it prefers a model for embeddings, then a model for scores.
"""

from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel import __version__
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.vector_maker import MAX_TEXTS, VectorMaker
from ouzel.api.http.send import json_response
from ouzel.checkpoint.sentence_files import SentenceFiles

_DTYPES: Mapping[str, str] = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
# transformers' name for the label of a single score
_ONE_LABEL = "LABEL_0"


class EmbeddingModel(msgspec.Struct):
    pooling: str


class RerankerModel(msgspec.Struct):
    id2label: dict[str, str]
    label2id: dict[str, int]


class ModelType(msgspec.Struct, omit_defaults=True):
    """The type of a model: exactly one of the two fields is set."""

    embedding: EmbeddingModel | None = None
    reranker: RerankerModel | None = None


class TeiInfo(msgspec.Struct):
    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: ModelType
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str


class Info:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def info(self, _: Request) -> Response:
        services = self._catalogue.first_for("embed", "score")
        making = VectorMaker(services)
        encoder, files = making.check_task("embed", "score", form=None)
        info = making.model.engine.info
        return json_response(
            TeiInfo(
                model_id=making.model.names[0],
                model_sha=None,
                model_dtype=_DTYPES.get(info.precision, info.precision),
                model_type=_model_type(making, files),
                max_concurrent_requests=making.model.engine.max_admitted,
                max_input_length=encoder.max_tokens,
                max_batch_tokens=info.max_num_batched_tokens,
                max_batch_requests=info.max_num_seqs,
                max_client_batch_size=MAX_TEXTS,
                auto_truncate=making.model.cuts_long_texts,
                tokenization_workers=1,
                version=__version__,
            )
        )


def _model_type(making: VectorMaker, files: SentenceFiles) -> ModelType:
    if making.task == "embed":
        return ModelType(embedding=EmbeddingModel("+".join(files.modes) or "none"))
    return ModelType(reranker=RerankerModel({"0": _ONE_LABEL}, {_ONE_LABEL: 0}))


OPERATIONS = (
    Operation(
        method="get",
        path="/info",
        summary="TEI: describes the model and its limits.",
        overall=lambda catalogue: Info(catalogue).info,
        answers=(TeiInfo,),
        words="tei",
    ),
)
