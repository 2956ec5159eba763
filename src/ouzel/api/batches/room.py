"""Limits the unfinished batches of an API key."""

from ouzel.batches.errors import TooManyBatches
from ouzel.config import LimitsConfig
from ouzel.store.base import Store

_RETRY_AFTER_S = 60.0


async def require_room(store: Store, key_id: str | None, limits: LimitsConfig) -> None:
    """Raises TooManyBatches if the key has as many unfinished batches as it may have."""
    num_batches = await store.batches.count_unfinished(key_id)
    if num_batches >= limits.max_batches:
        raise TooManyBatches(
            f"unfinished batches must be <= {limits.max_batches} (--max-batches), "
            f"given {num_batches + 1}",
            retry_after_s=_RETRY_AFTER_S,
        )
