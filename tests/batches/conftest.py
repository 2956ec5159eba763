from pathlib import Path

import pytest

from tests.batches.running import add_batches
from tests.store.watched import StoreCopies


@pytest.fixture(params=["sqlite", "postgres"])
async def copies(
    request: pytest.FixtureRequest, tmp_path: Path, before_release: bool
) -> StoreCopies:
    """Copies stores in which the batches wait for a server."""
    postgres = None
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
    copies = StoreCopies(tmp_path, postgres, is_thorough=before_release)
    await copies.prepare(add_batches)
    return copies
