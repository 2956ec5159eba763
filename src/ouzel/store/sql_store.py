"""Implements the store on SQLite or Postgres; `base.py` describes each method.

Reading writes nothing: the ids that were read are remembered, and the next beat marks their rows as
used.
"""

import secrets
import time
from collections.abc import Collection, Sequence

from sqlalchemy.exc import SQLAlchemyError

from ouzel.store import conversations, history, leases, responses, retention
from ouzel.store.batches.sql_batches import SqlBatchStore
from ouzel.store.chats.sql_chats import SqlChats
from ouzel.store.clock_jumps import ClockJumps
from ouzel.store.database import Database
from ouzel.store.engines import open_database
from ouzel.store.errors import ResponseNotFound, StoreOpenError, StoreUnavailable
from ouzel.store.faults import reason
from ouzel.store.files.sql_files import SqlFiles
from ouzel.store.items import any_item, select_page
from ouzel.store.records import (
    Item,
    NewResponse,
    Page,
    PageRequest,
    Progress,
    StoredConversation,
    StoredResponse,
)
from ouzel.store.schema import prepare_schema
from ouzel.store.uploads.sql_uploads import SqlUploads
from ouzel.store.vector_stores.room import SizeLimits
from ouzel.store.vector_stores.sql_vector_stores import SqlVectorStores

_MAX_TOUCH_S = 60.0  # the precision of "last used"
_MAX_TOUCHED = 500  # ids per transaction
_VECTOR_LIMITS = SizeLimits(max_bytes=10 * 2**30, max_bytes_per_key=10 * 2**30)


async def open_store(
    url: str,
    *,
    lease_s: float = 10.0,
    busy_s: float = 10.0,
    max_age_s: float,
    max_bytes: int,
    max_file_bytes: int = 10 * 2**30,
    vector_limits: SizeLimits = _VECTOR_LIMITS,
) -> "SqlStore":
    """Opens a store; creates the file and the schema if they do not exist.

    Waits `busy_s` seconds at most for locks of other programs. `lease_s` is the duration of a
    lease. `max_age_s` and `max_bytes` limit the stored responses, conversations and chats, and
    `max_file_bytes` limits all files together, and `vector_limits` the vector stores. Raises
    StoreOpenError.
    """
    database = open_database(url, busy_s=busy_s)
    store = SqlStore(
        database,
        lease_s=lease_s,
        max_age_s=max_age_s,
        max_bytes=max_bytes,
        max_file_bytes=max_file_bytes,
        vector_limits=vector_limits,
    )
    try:
        await database.keep_schema(prepare_schema)
        await store.beat()
    except BaseException as error:
        await database.close()
        if isinstance(error, StoreUnavailable):  # the operator, unlike a client, gets the details
            raise StoreOpenError(f"{error} ({error.__cause__})") from error
        if isinstance(error, SQLAlchemyError):  # the driver does not accept the URL
            raise StoreOpenError(f"the store cannot be opened: {reason(error)}") from error
        raise
    return store


class SqlStore:
    def __init__(
        self,
        database: Database,
        *,
        lease_s: float,
        max_age_s: float,
        max_bytes: int,
        max_file_bytes: int,
        vector_limits: SizeLimits,
    ) -> None:
        self.server_id = secrets.token_hex(16)
        self._database = database
        self._lease_s = lease_s
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._touch_s = min(_MAX_TOUCH_S, max_age_s / 10)
        self._used: set[str] = set()  # responses, conversations, chats read since the last beat
        self.chats = SqlChats(database, self._used.add)
        self.files = SqlFiles(database, max_file_bytes)
        self.uploads = SqlUploads(database, self.files)
        self._clock_jumps = ClockJumps(lease_s)
        self.batches = SqlBatchStore(
            database, server_id=self.server_id, lease_s=lease_s, may_take=self._may_take
        )
        self.vector_stores = SqlVectorStores(
            database,
            server_id=self.server_id,
            lease_s=lease_s,
            may_take=self._may_take,
            limits=vector_limits,
        )
        self._renewed_s = -lease_s  # time of the last renewal, of the monotonic clock

    async def close(self) -> None:
        if self._database.is_closed:
            return
        try:
            await self._touch_used()
            await self._database.write(leases.end, self.server_id)
        except StoreUnavailable:
            pass  # the lease ends by itself
        finally:
            await self._database.close()

    # Responses

    async def add_response(self, new: NewResponse, output_items: Sequence[Item] = ()) -> None:
        await self._renew_if_old()
        await self._database.write(responses.add, new, self.server_id, output_items)

    async def record(self, response_id: str, progress: Progress, *, first_event: int) -> bool:
        return await self._database.write(
            responses.record, response_id, progress, first_event, self.server_id
        )

    async def response(self, response_id: str, key_id: str | None) -> StoredResponse | None:
        response = await self._database.read(responses.get, response_id, key_id)
        if response is not None:
            self._used.add(response_id)
        return response

    async def delete_response(self, response_id: str, key_id: str | None) -> bool:
        return await self._database.delete(responses.remove, response_id, key_id)

    async def history(self, response_id: str, key_id: str | None) -> list[Item]:
        items = await self._database.read(history.history, response_id, key_id)
        self._used.add(response_id)
        return items

    async def input_items(
        self, response_id: str, key_id: str | None, page: PageRequest
    ) -> Page | None:
        try:
            context = await self._database.read(
                history.history, response_id, key_id, with_output=False
            )
        except ResponseNotFound:
            return None
        return select_page(context, page)

    async def item(self, item_id: str, key_id: str | None) -> Item | None:
        return await self._database.read(any_item, item_id, key_id)

    async def events(
        self, response_id: str, key_id: str | None, *, after: int
    ) -> tuple[bytes, ...]:
        return await self._database.read(responses.events_after, response_id, key_id, after)

    # Several servers, and restarts

    async def beat(self) -> None:
        self._renewed_s = time.monotonic()
        await self._database.write(leases.renew, self.server_id, self._lease_s)
        await self._touch_used()

    async def _renew_if_old(self) -> None:
        """Renews a lease of which a quarter is over.

        An idle server lets its lease end, so that the disk can sleep.
        """
        if time.monotonic() - self._renewed_s > self._lease_s / 4:
            await self.beat()

    async def take_abandoned(self) -> list[StoredResponse]:
        if not await self._may_take():
            return []
        return await self._database.write(leases.take_abandoned, self.server_id, self._lease_s)

    async def take_queued(self, models: Sequence[str], limit: int) -> list[StoredResponse]:
        if not await self._may_take():
            return []
        return await self._database.write(
            leases.take_queued, self.server_id, self._lease_s, models, limit
        )

    async def _may_take(self) -> bool:
        unix_s = await self._database.read(leases.now)
        return self._clock_jumps.are_settled(unix_s, time.monotonic())

    async def release(self, ids: Collection[str]) -> None:
        await self._database.write(leases.release, self.server_id, ids)

    async def ended(self, ids: Collection[str]) -> set[str]:
        return await self._database.read(leases.ended, ids)

    async def sweep(self) -> int:
        await self._touch_used()
        num_deleted = 0
        max_age_s = self._max_age_s + self._touch_s
        while some := await self._database.delete(
            retention.delete_some, max_age_s, self._max_bytes
        ):
            num_deleted += some
            await self.beat()
        await self.uploads.sweep()
        num_deleted += await self.files.sweep() + await self.vector_stores.sweep()
        await self.beat()
        while await self._database.give_space_back():
            await self.beat()
        return num_deleted

    async def _touch_used(self) -> None:
        while self._used:
            some = [self._used.pop() for _ in range(min(len(self._used), _MAX_TOUCHED))]
            await self._database.delete(retention.touch, some, self._touch_s)

    # Conversations

    async def create_conversation(
        self,
        conversation_id: str,
        key_id: str | None,
        metadata: dict[str, str],
        items: Sequence[Item],
    ) -> StoredConversation:
        return await self._database.write(
            conversations.create, conversation_id, key_id, metadata, items
        )

    async def conversation(
        self, conversation_id: str, key_id: str | None
    ) -> StoredConversation | None:
        conversation = await self._database.read(conversations.get, conversation_id, key_id)
        if conversation is not None:
            self._used.add(conversation_id)
        return conversation

    async def update_conversation(
        self, conversation_id: str, key_id: str | None, metadata: dict[str, str]
    ) -> StoredConversation | None:
        return await self._database.write(conversations.change, conversation_id, key_id, metadata)

    async def delete_conversation(self, conversation_id: str, key_id: str | None) -> bool:
        return await self._database.delete(conversations.remove, conversation_id, key_id)

    async def conversation_items(self, conversation_id: str, key_id: str | None) -> list[Item]:
        items = await self._database.read(conversations.all_items, conversation_id, key_id)
        self._used.add(conversation_id)
        return items

    async def conversation_page(
        self, conversation_id: str, key_id: str | None, page: PageRequest
    ) -> Page:
        result = await self._database.read(conversations.page, conversation_id, key_id, page)
        self._used.add(conversation_id)
        return result

    async def conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> Item | None:
        return await self._database.read(conversations.item, conversation_id, key_id, item_id)

    async def add_conversation_items(
        self, conversation_id: str, key_id: str | None, items: Sequence[Item]
    ) -> None:
        await self._database.write(conversations.append, conversation_id, key_id, items)

    async def delete_conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> bool:
        return await self._database.delete(
            conversations.remove_item, conversation_id, key_id, item_id
        )
