"""A process that writes to a store and prints each response's name once it is stored.

It ends when it is killed or has written enough. Arguments: URL, prefix of the ids, number of
responses, and the largest file size in bytes (0 for no limit).
"""

import asyncio
import resource
import sys

from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.records import Status
from ouzel.store.sql_store import open_store
from tests.store.making import new_response, progress

NUM_DELETED = 3  # responses to delete when the disk is full


async def write(url: str, prefix: str, num_responses: int, max_file_bytes: int) -> None:
    store = await open_store(url, lease_s=0.2, max_age_s=86400.0, max_bytes=2**30)
    if max_file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    previous = None
    for number in range(num_responses):
        response_id = f"{prefix}{number}"
        try:
            await store.add_response(
                new_response(response_id, asked=["a"], previous=previous, events=[b"e" * 1000])
            )
            sys.stdout.write(f"added {response_id}\n")
            sys.stdout.flush()
            assert await store.record(
                response_id, progress(Status.COMPLETED, "b", events=[b"end"]), first_event=1
            )
        except StoreUnavailable as error:
            sys.stdout.write(f"unavailable {error}\n")
            break
        sys.stdout.write(f"ended {response_id}\n")
        sys.stdout.flush()
        previous = response_id
    if max_file_bytes:
        await make_room(store, prefix)
    await store.close()


async def make_room(store: Store, prefix: str) -> None:
    """Reads, deletes and adds responses while the disk is full."""
    assert await store.response(f"{prefix}0", "key") is not None
    sys.stdout.write("read\n")
    sys.stdout.flush()
    for number in range(NUM_DELETED):
        assert await store.delete_response(f"{prefix}{number}", "key")
    sys.stdout.write("deleted\n")
    sys.stdout.flush()
    await store.add_response(new_response(f"{prefix}new", asked=["a"]))
    sys.stdout.write("added new\n")


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
