"""Every test of the store runs over both databases, unless it is about one of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ouzel.store.base import Store
from ouzel.store.sql_store import open_store
from ouzel.store.vector_stores.room import SizeLimits

OpenStore = Callable[..., Awaitable[Store]]
DAY_S = 86400.0


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/responses.sqlite3"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def opened(store_url: str) -> AsyncIterator[OpenStore]:
    """Opens stores on one database, like servers that share it; they are closed at the end."""
    stores: list[Store] = []

    async def open_another(
        *,
        lease_s: float = 600.0,
        max_age_s: float = DAY_S,
        max_bytes: int = 2**30,
        vector_limits: SizeLimits = SizeLimits(2**30, 2**30),  # noqa: B008  a frozen record
        url: str = store_url,
    ) -> Store:
        stores.append(
            await open_store(
                url,
                lease_s=lease_s,
                max_age_s=max_age_s,
                max_bytes=max_bytes,
                vector_limits=vector_limits,
            )
        )
        return stores[-1]

    yield open_another
    for store in stores:
        await store.close()


@pytest.fixture
async def store(opened: OpenStore) -> Store:
    return await opened()
