"""Vector stores with the official client: files, batches, searches, owners, restarts."""

from collections.abc import Callable
from pathlib import Path

import openai
import pytest

from tests.api.responses.strict import check
from tests.api.vector_stores.setup import TEXTS, connect, fill, search_server, upload
from tests.engine import vector_runner


def search(client: openai.OpenAI, store_id: str, query: str, **fields: object) -> list[str]:
    """Returns the names of the files that are found."""
    found = client.vector_stores.search(store_id, query=query, extra_body=fields)
    for hit in found:
        check(hit)
        assert 0 <= hit.score <= 1
    return [hit.filename for hit in found]


def test_a_file_is_uploaded_indexed_and_read(client: openai.OpenAI) -> None:
    store = client.vector_stores.create(name="notes")
    file = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id,
        file=("otters.md", TEXTS["otters.md"].encode()),
        attributes={"year": 2024, "is_draft": False, "author": "Ada"},
        poll_interval_ms=10,
    )
    check(file)
    assert (file.status, file.last_error) == ("completed", None)
    assert file.attributes == {"year": 2024, "is_draft": False, "author": "Ada"}
    assert file.usage_bytes > len(TEXTS["otters.md"])
    store = client.vector_stores.retrieve(store.id)
    check(store)
    assert (store.status, store.usage_bytes) == ("completed", file.usage_bytes)
    assert (store.file_counts.completed, store.file_counts.total) == (1, 1)
    [page] = client.vector_stores.files.content(file.id, vector_store_id=store.id)
    assert page.text == TEXTS["otters.md"]


def test_a_batch_tells_which_files_cannot_be_read(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    batch = client.vector_stores.file_batches.upload_and_poll(
        store.id,
        files=[
            ("a.txt", b"crabs"),
            ("b.html", b"<h1>Seals</h1><p>herring"),
            ("c.bin", bytes(range(256))),
            ("d.docx", b"PK\x03\x04 broken"),
        ],
        poll_interval_ms=10,
    )
    check(batch)
    assert batch.status == "completed"
    assert (batch.file_counts.completed, batch.file_counts.failed) == (2, 2)
    files = client.vector_stores.file_batches
    failed = list(files.list_files(batch.id, vector_store_id=store.id, filter="failed"))
    codes = [file.last_error.code for file in failed if file.last_error is not None]
    assert sorted(codes) == ["invalid_file", "unsupported_file"]
    assert search(client, store.id, "herring")[0] == "b.html"


def test_words_and_headings_are_found(client: openai.OpenAI, notes: str) -> None:
    assert search(client, notes, "Which animals hold hands?")[0] == "otters.md"
    assert search(client, notes, "salary")[0] == "pay.txt"
    found = client.vector_stores.search(notes, query=["salary", "herring"], max_num_results=2)
    assert found.data[0].content[0].text in TEXTS.values()
    assert {hit.filename for hit in found} == {"pay.txt", "seals.md"}


@pytest.mark.parametrize("ranker", ["auto", "default-2024-11-15", "none"])
def test_results_are_limited(client: openai.OpenAI, notes: str, ranker: str) -> None:
    ranking = {"ranker": ranker}
    assert len(search(client, notes, "sleep", ranking_options=ranking, max_num_results=2)) == 2
    scored = client.vector_stores.search(
        notes, query="sleep", extra_body={"ranking_options": ranking}
    ).data
    scores = [hit.score for hit in scored]
    assert scores == sorted(scores, reverse=True)
    ranking_options = {**ranking, "score_threshold": scores[0]}
    best = search(client, notes, "sleep", ranking_options=ranking_options)
    assert len(best) == scores.count(scores[0])


def test_weights_choose_between_words_and_vectors(client: openai.OpenAI, notes: str) -> None:
    only_words = {"hybrid_search": {"embedding_weight": 0, "text_weight": 1}}
    assert search(client, notes, "herring", ranking_options=only_words) == ["seals.md"]
    assert search(client, notes, "nonsense", ranking_options=only_words) == []
    only_vectors = {"hybrid_search": {"embedding_weight": 1, "text_weight": 0}}
    assert set(search(client, notes, "nonsense", ranking_options=only_vectors)) == TEXTS.keys()


def test_filters_select_files_by_attributes(client: openai.OpenAI) -> None:
    store_id = client.vector_stores.create().id
    for year in (2023, 2024, 2025):
        client.vector_stores.files.upload_and_poll(
            vector_store_id=store_id,
            file=(f"{year}.txt", b"the report"),
            attributes={"year": year, "region": "north" if year < 2025 else "south"},
            poll_interval_ms=10,
        )

    def select(**filter: object) -> set[str]:
        return set(search(client, store_id, "report", filters=filter))

    assert select(type="gte", key="year", value=2024) == {"2024.txt", "2025.txt"}
    assert select(type="in", key="year", value=[2023, 2025]) == {"2023.txt", "2025.txt"}
    north: dict[str, object] = {"type": "eq", "key": "region", "value": "north"}
    late: dict[str, object] = {"type": "gt", "key": "year", "value": 2023}
    assert select(type="and", filters=[north, late]) == {"2024.txt"}
    assert len(select(type="or", filters=[north, late])) == 3
    [moved, *_] = client.vector_stores.files.list(store_id)  # the newest file
    changed = client.vector_stores.files.update(
        moved.id, vector_store_id=store_id, attributes={"year": 1990}
    )
    assert changed.attributes == {"year": 1990}
    assert select(type="lt", key="year", value=2000) == {"2025.txt"}
    assert select(**north) == {"2023.txt", "2024.txt"}


def test_a_vector_store_is_changed_listed_and_deleted(client: openai.OpenAI) -> None:
    made = client.vector_stores.create(
        name="a", metadata={"team": "x"}, expires_after={"anchor": "last_active_at", "days": 2}
    )
    check(made)
    assert made.last_active_at is not None
    assert made.expires_at == made.last_active_at + 2 * 86400
    changed = client.vector_stores.update(made.id, name="b", metadata={"team": "y"})
    assert (changed.name, changed.metadata) == ("b", {"team": "y"})
    assert changed.expires_after is not None
    assert changed.expires_after.days == 2
    newer = client.vector_stores.create(name="c")
    ids = [store.id for store in client.vector_stores.list(limit=1)]  # page after page
    assert ids[:2] == [newer.id, made.id]
    assert len(ids) == len(set(ids))
    assert client.vector_stores.list(before=made.id, limit=1).data[0].id == newer.id
    assert client.vector_stores.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.retrieve(made.id)


def test_a_removed_file_is_found_no_more(client: openai.OpenAI) -> None:
    store_id = fill(client, {"a.txt": "herring", "b.txt": "crabs"})
    assert set(search(client, store_id, "crabs")) == {"a.txt", "b.txt"}
    files = {
        search_hit.filename: search_hit.file_id
        for search_hit in client.vector_stores.search(store_id, query="crabs")
    }
    client.vector_stores.files.delete(files["b.txt"], vector_store_id=store_id)
    assert search(client, store_id, "crabs") == ["a.txt"]
    assert client.files.retrieve(files["b.txt"]).filename == "b.txt"  # the upload stays
    client.files.delete(files["a.txt"])
    assert search(client, store_id, "crabs") == []


def test_chunks_have_the_size_that_the_client_chooses(client: openai.OpenAI) -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(100))
    store = client.vector_stores.create()
    file = client.vector_stores.files.create_and_poll(
        upload(client, "long.txt", text),
        vector_store_id=store.id,
        chunking_strategy={
            "type": "static",
            "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50},
        },
        poll_interval_ms=10,
    )
    assert file.chunking_strategy is not None
    assert file.chunking_strategy.to_dict() == {
        "type": "static",
        "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50},
    }
    found = client.vector_stores.search(store.id, query="Sentence 77", max_num_results=50).data
    pieces = [hit.content[0].text for hit in found]
    assert len(pieces) > 10
    assert max(map(len, pieces)) <= 200  # a token of the test's model is one byte
    assert sum(map(len, pieces)) > len(text)
    [page] = client.vector_stores.files.content(file.id, vector_store_id=store.id)
    assert page.text == text


Step = Callable[[openai.OpenAI, str, str], object]
DOORS: dict[str, Step] = {
    "get": lambda other, store, _: other.vector_stores.retrieve(store),
    "change": lambda other, store, _: other.vector_stores.update(store, name="mine"),
    "delete": lambda other, store, _: other.vector_stores.delete(store),
    "search": lambda other, store, _: other.vector_stores.search(store, query="salary"),
    "files": lambda other, store, _: other.vector_stores.files.list(store),
    "file": lambda other, store, file: other.vector_stores.files.retrieve(
        file, vector_store_id=store
    ),
    "content": lambda other, store, file: other.vector_stores.files.content(
        file, vector_store_id=store
    ),
    "attributes": lambda other, store, file: other.vector_stores.files.update(
        file, vector_store_id=store, attributes={}
    ),
    "remove": lambda other, store, file: other.vector_stores.files.delete(
        file, vector_store_id=store
    ),
    "add": lambda other, store, file: other.vector_stores.files.create(store, file_id=file),
    "batch": lambda other, store, file: other.vector_stores.file_batches.create(
        store, file_ids=[file]
    ),
    "take": lambda other, _, file: other.vector_stores.create(file_ids=[file]),
    "respond": lambda other, store, _: other.responses.create(
        model="parrot",
        input="hi",
        tools=[{"type": "file_search", "vector_store_ids": [store]}],
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_vector_store_does_not_exist_for_another_key(
    client: openai.OpenAI, other: openai.OpenAI, notes: str, door: str
) -> None:
    file_id = client.vector_stores.files.list(notes).data[0].id
    with pytest.raises(openai.NotFoundError):
        DOORS[door](other, notes, file_id)
    assert notes not in [store.id for store in other.vector_stores.list()]
    assert search(client, notes, "salary")[0] == "pay.txt"


@pytest.mark.usefixtures("no_vectors")
def test_a_batch_is_cancelled(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    batch = client.vector_stores.file_batches.create(
        store.id, file_ids=[upload(client, f"{place}.txt", "text") for place in range(3)]
    )
    assert (batch.status, batch.file_counts.in_progress) == ("in_progress", 3)
    cancelled = client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
    assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", 3)
    vector_runner.may_run.set()
    again = upload(client, "again.txt", "later")
    file = client.vector_stores.files.create_and_poll(
        again, vector_store_id=store.id, poll_interval_ms=10
    )
    assert file.status == "completed"
    assert search(client, store.id, "text") == ["again.txt"]


@pytest.mark.usefixtures("no_vectors")
def test_indexing_goes_on_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite3"
    with search_server(file) as first, connect(first) as client:
        file_ids = [upload(client, name, text) for name, text in TEXTS.items()]
        store_id = client.vector_stores.create(name="notes", file_ids=file_ids).id
        assert client.vector_stores.retrieve(store_id).status == "in_progress"
        # The server stops while the model for vectors reads the first file.
        first.run(first.catalogue.find("embedder").model.engine.close())
    vector_runner.may_run.set()
    with search_server(file) as second, connect(second) as client:
        for file_id in file_ids:
            ended = client.vector_stores.files.poll(
                file_id, vector_store_id=store_id, poll_interval_ms=10
            )
            assert ended.status == "completed"
        assert search(client, store_id, "salary")[0] == "pay.txt"
        assert client.vector_stores.retrieve(store_id).file_counts.completed == len(TEXTS)
