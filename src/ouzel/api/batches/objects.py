"""Defines the bodies and the answers of /batches."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.api.endpoint.object_list import ObjectList
from ouzel.batches.input_lines import LineFault
from ouzel.store.batches.records import LineUsage, StoredBatch
from ouzel.wire.fields import Labels

BatchEndpoint = Literal[
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"
]


class OutputExpiresAfter(msgspec.Struct, kw_only=True):
    anchor: Annotated[Literal["created_at"], Meta(description="The time counts from here.")]
    seconds: Annotated[
        int, Meta(ge=3600, le=2592000, description="Seconds from the writing of the files.")
    ]


class CreateBatchRequest(msgspec.Struct, kw_only=True):
    input_file_id: Annotated[
        str,
        Meta(description="A file with the purpose batch: one request a line, one model."),
    ]
    endpoint: Annotated[BatchEndpoint, Meta(description="The endpoint of all requests.")]
    completion_window: Annotated[
        str,
        Meta(
            pattern=r"^([1-9]|[1-9][0-9]|1[0-5][0-9]|16[0-8])h$",
            description="Hours until the batch expires: 1h to 168h; OpenAI has only 24h.",
        ),
    ]
    metadata: Annotated[Labels | None, Meta(description="Labels of the batch.")] = None
    output_expires_after: Annotated[
        OutputExpiresAfter | None,
        Meta(description="The result files are deleted after this time; null keeps them."),
    ] = None


class BatchErrors(msgspec.Struct, frozen=True, tag_field="object", tag="list"):
    data: list[LineFault]


class RequestCounts(msgspec.Struct, frozen=True):
    total: int
    completed: int
    failed: int


class InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int


class OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class BatchUsage(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int

    @classmethod
    def of(cls, usage: LineUsage) -> "BatchUsage":
        return cls(
            input_tokens=usage.input_tokens,
            input_tokens_details=InputDetails(usage.cached_tokens),
            output_tokens=usage.output_tokens,
            output_tokens_details=OutputDetails(usage.reasoning_tokens),
            total_tokens=usage.input_tokens + usage.output_tokens,
        )


class Batch(msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="batch"):
    """A batch; times are unix seconds."""

    id: str
    endpoint: str
    model: str | None
    errors: BatchErrors | None
    input_file_id: str
    completion_window: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: BatchUsage
    metadata: dict[str, str] | None

    @classmethod
    def of(cls, stored: StoredBatch) -> "Batch":
        counts = RequestCounts(
            total=stored.num_lines,
            completed=stored.num_succeeded,
            failed=stored.num_errored + stored.num_cancelled + stored.num_expired,
        )
        return cls(
            id=stored.id,
            endpoint=stored.endpoint,
            model=stored.model,
            errors=None if stored.errors is None else BatchErrors(_decode_faults(stored.errors)),
            input_file_id=stored.input_file_id or "",
            completion_window=f"{stored.window_s // 3600}h",
            status=stored.status.value,
            output_file_id=stored.output_file_id,
            error_file_id=stored.error_file_id,
            created_at=int(stored.created_at),
            in_progress_at=_whole(stored.in_progress_at),
            expires_at=int(stored.expires_at),
            finalizing_at=_whole(stored.finalizing_at),
            completed_at=_whole(stored.completed_at),
            failed_at=_whole(stored.failed_at),
            expired_at=_whole(stored.expired_at),
            cancelling_at=_whole(stored.cancelling_at),
            cancelled_at=_whole(stored.cancelled_at),
            request_counts=counts,
            usage=BatchUsage.of(stored.usage),
            metadata=None if stored.metadata is None else _decode_labels(stored.metadata),
        )


class BatchList(ObjectList[Batch], frozen=True):
    pass


_decode_faults = msgspec.json.Decoder(list[LineFault]).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)
