"""Vector stores have a limit of bytes, which an operator sets for each API key."""

from pathlib import Path

import openai
import pytest

from tests.api.vector_stores.setup import connect, fill, read_problem, search_server, upload


def test_a_file_beyond_the_limit_fails_and_a_full_server_says_so(tmp_path: Path) -> None:
    with search_server(tmp_path / "first.sqlite3") as server, connect(server) as client:
        store_id = fill(client, {"a.txt": "herring"})
        limit = client.vector_stores.retrieve(store_id).usage_bytes
    option = f"{limit} bytes of texts and vectors (vector_stores_key_max_gib)"
    with (
        search_server(tmp_path / "second.sqlite3", bytes_per_key=limit) as server,
        connect(server) as client,
    ):
        store_id = client.vector_stores.create().id
        file = client.vector_stores.files.create_and_poll(
            upload(client, "b.txt", "a crab " * 9), vector_store_id=store_id, poll_interval_ms=10
        )
        assert (file.status, file.usage_bytes) == ("failed", 0)
        assert file.last_error is not None
        assert option in file.last_error.message
        store_id = fill(client, {"a.txt": "herring"})
        assert client.vector_stores.search(store_id, query="crab").data[0].filename == "a.txt"
        with pytest.raises(openai.APIStatusError) as caught:
            client.vector_stores.create(file_ids=[file.id])
        assert read_problem(caught.value) == (413, "file_ids")
        assert option in str(caught.value)
        client.vector_stores.delete(store_id)
        client.vector_stores.create(file_ids=[file.id])
