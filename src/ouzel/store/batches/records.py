"""Defines the records of batches that the store takes and returns."""

from enum import StrEnum
from typing import Literal

import msgspec

Dialect = Literal["openai", "anthropic"]


class BatchStatus(StrEnum):
    """The status of a batch, in OpenAI's words."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset(
    {BatchStatus.FAILED, BatchStatus.COMPLETED, BatchStatus.EXPIRED, BatchStatus.CANCELLED}
)


class LineEnd(StrEnum):
    """The way in which a line has ended."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class NewBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch to add; its lines are added later, or with it."""

    id: str
    key_id: str | None  # the API key that owns the batch; None on a server without keys
    dialect: Dialect
    endpoint: str
    input_file_id: str | None
    window_s: int  # the batch expires after this time
    metadata: bytes | None  # JSON
    output_expires_after_s: int | None


class NewLine(msgspec.Struct, frozen=True):
    custom_id: str
    body: bytes  # the body of the request


class Line(msgspec.Struct, frozen=True):
    """A line that this server has taken to run it."""

    position: int
    custom_id: str
    body: bytes


class LineUsage(msgspec.Struct, frozen=True):
    """The tokens of one line, or of all lines of a batch."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0


class LineResult(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    end: LineEnd
    result: bytes  # JSON, as the API shows it
    usage: LineUsage = LineUsage()


class StoredResult(msgspec.Struct, frozen=True):
    """The end of a line; a cancelled or expired line may have no result."""

    position: int
    custom_id: str
    end: LineEnd
    result: bytes | None


class StoredBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch; times are unix seconds."""

    id: str
    key_id: str | None
    dialect: Dialect
    endpoint: str
    input_file_id: str | None
    window_s: int
    metadata: bytes | None
    output_expires_after_s: int | None
    status: BatchStatus
    model: str | None  # known after the validation
    num_lines: int
    num_succeeded: int
    num_errored: int
    num_cancelled: int
    num_expired: int
    usage: LineUsage
    errors: bytes | None  # JSON: the faults that the validation found
    output_file_id: str | None
    error_file_id: str | None
    created_at: float
    in_progress_at: float | None
    expires_at: float
    finalizing_at: float | None
    completed_at: float | None
    failed_at: float | None
    expired_at: float | None
    cancelling_at: float | None
    cancelled_at: float | None
    is_overdue: bool  # the time of the batch is over

    @property
    def num_ended(self) -> int:
        return self.num_succeeded + self.num_errored + self.num_cancelled + self.num_expired


class BatchPageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for batches, the newest first."""

    limit: int
    after: str | None = None  # the page begins behind the batch with this id
    before: str | None = None  # the page ends before the batch with this id


class BatchPage(msgspec.Struct, frozen=True):
    batches: tuple[StoredBatch, ...]
    has_more: bool
