"""Defines the errors about batches."""

from ouzel.errors import InvalidRequest, TryLater


class BatchNotFound(InvalidRequest):
    """The API key has no batch with this id."""

    status = 404
    code = "batch_not_found"

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"there is no batch {batch_id[:100]!r}", param="batch_id")


class BatchEnded(InvalidRequest):
    """A batch that has ended, or that is being finalized, cannot be cancelled."""

    status = 409
    code = "batch_ended"


class TooManyBatches(TryLater):
    """The API key has as many unfinished batches as it may have."""

    status = 429
    type = "rate_limit_error"
    code = "too_many_batches"
