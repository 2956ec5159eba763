"""Stores finished chat completions without holding up their answers.

1.  A completion is stored before the end of its answer. If that takes longer than `_MAX_WAIT_S`,
    the answer ends first, and storing goes on.
2.  A request for stored completions waits until the completions of earlier answers are stored.
3.  A completion that cannot be stored is an error in the log. The answer does not change.
"""

import asyncio
import logging
from collections.abc import Callable

from ouzel.store.base import Store
from ouzel.store.chats.records import NewChat
from ouzel.store.errors import StoreUnavailable

_MAX_WAIT_S = 0.2

logger = logging.getLogger(__name__)


class ChatArchive:
    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Tells whether the server stores anything."""
        return self._store is not None

    async def add(self, chat_id: str, make: Callable[[], NewChat]) -> None:
        """Stores the completion that `make` returns; `make` is called in a thread."""
        assert self._store is not None
        writing = asyncio.create_task(self._write(self._store, chat_id, make))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.wait((writing,), timeout=_MAX_WAIT_S)

    async def settle(self) -> None:
        """Waits for the completions that are being stored; the store limits the time."""
        if self._writing:
            await asyncio.wait(self._writing)

    async def _write(self, store: Store, chat_id: str, make: Callable[[], NewChat]) -> None:
        try:
            await store.chats.add(await asyncio.to_thread(make))
        except StoreUnavailable as error:
            logger.error("the chat completion %s is not stored: %s", chat_id, error)
        except Exception:  # broad: no task awaits this one
            logger.exception("the chat completion %s is not stored", chat_id)
