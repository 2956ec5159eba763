"""Indexes the words of chunks: with FTS5 on SQLite, with text search vectors on Postgres.

SQLite ranks by BM25, whose frequencies count all chunks of the database. Postgres has no BM25: the
rank of each word is weighted by its rarity in the searched vector stores. Both stem English words.
"""

import json
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Table, event, text

from ouzel.store.vector_stores.records import ChunkPlace
from ouzel.store.vector_stores.tables import vector_store_chunks

# A query has only a column's words, so that no position of a word is needed. The column `store`
# lets the index find the words of a vector store without a look at others.
_CREATE_IN_SQLITE = """
CREATE VIRTUAL TABLE vector_store_words USING fts5(
    store, words, tokenize = 'porter unicode61 remove_diacritics 2'
)
"""
_CREATE_IN_POSTGRES = (
    "CREATE TABLE vector_store_words "
    "(number bigint PRIMARY KEY, store_number bigint NOT NULL, words tsvector NOT NULL)",
    "CREATE INDEX vector_store_words_by_word ON vector_store_words USING gin (words)",
    "CREATE INDEX vector_store_words_by_store ON vector_store_words (store_number)",
)


@event.listens_for(vector_store_chunks, "after_create")
def _create_index(table: Table, connection: Connection, **options: object) -> None:
    is_sqlite = _is_sqlite(connection)
    for statement in (_CREATE_IN_SQLITE,) if is_sqlite else _CREATE_IN_POSTGRES:
        connection.exec_driver_sql(statement)


_ADD_IN_SQLITE = text("INSERT INTO vector_store_words(rowid, store, words) VALUES (:n, :s, :w)")
_ADD_IN_POSTGRES = text(
    "INSERT INTO vector_store_words(number, store_number, words) "
    "VALUES (:n, :s, to_tsvector('english', :w))"
)
_DELETE_IN_SQLITE = text(
    "DELETE FROM vector_store_words WHERE rowid IN (SELECT value FROM json_each(:numbers))"
)
_DELETE_IN_POSTGRES = text("DELETE FROM vector_store_words WHERE number = ANY(:numbers)")
_FIND_IN_SQLITE = """
SELECT chunks.file_number, chunks.position
FROM vector_store_words AS words
CROSS JOIN vector_store_chunks AS chunks ON chunks.number = words.rowid
CROSS JOIN vector_store_files AS files ON files.number = chunks.file_number
WHERE vector_store_words MATCH :query AND files.status = 'completed' {files}
ORDER BY bm25(vector_store_words, 0.0, 1.0), chunks.number LIMIT :limit
"""
_FILES_IN_SQLITE = "AND chunks.file_number IN (SELECT value FROM json_each(:file_numbers))"
_FIND_IN_POSTGRES = """
WITH terms AS (
    SELECT DISTINCT to_tsquery('simple', quote_literal(term)) AS query
    FROM unnest(tsvector_to_array(to_tsvector('english', :words))) AS term
), matches AS (
    SELECT indexed.number, terms.query, ts_rank(indexed.words, terms.query, 1) AS rank
    FROM terms JOIN vector_store_words AS indexed ON indexed.words @@ terms.query
    WHERE indexed.store_number = ANY(:stores)
), counts AS (
    SELECT query, count(*)::float8 AS num_chunks FROM matches GROUP BY query
), total AS (
    SELECT count(*)::float8 AS num_chunks FROM vector_store_words
    WHERE store_number = ANY(:stores)
), ranked AS (
    SELECT matches.number, sum(matches.rank * ln(
        1 + (total.num_chunks - counts.num_chunks + 0.5) / (counts.num_chunks + 0.5)
    )) AS rank
    FROM matches JOIN counts ON counts.query = matches.query CROSS JOIN total
    GROUP BY matches.number
)
SELECT chunks.file_number, chunks.position
FROM ranked JOIN vector_store_chunks AS chunks ON chunks.number = ranked.number
JOIN vector_store_files AS files ON files.number = chunks.file_number
WHERE files.status = 'completed' {files}
ORDER BY ranked.rank DESC, chunks.number LIMIT :limit
"""
_FILES_IN_POSTGRES = "AND chunks.file_number = ANY(:file_numbers)"


def add(connection: Connection, store_number: int, rows: Sequence[tuple[int, str]]) -> None:
    """Indexes the words of chunks; a row is the number of a chunk and its words."""
    is_sqlite = _is_sqlite(connection)
    store = _mark(store_number) if is_sqlite else store_number
    values = [{"n": number, "s": store, "w": words} for number, words in rows]
    connection.execute(_ADD_IN_SQLITE if is_sqlite else _ADD_IN_POSTGRES, values)


def remove(connection: Connection, numbers: Sequence[int]) -> None:
    if _is_sqlite(connection):
        connection.execute(_DELETE_IN_SQLITE, {"numbers": json.dumps(list(numbers))})
    else:
        connection.execute(_DELETE_IN_POSTGRES, {"numbers": list(numbers)})


def find(
    connection: Connection,
    store_numbers: Collection[int],
    words: Sequence[str],
    file_numbers: Collection[int] | None,
    limit: int,
) -> list[ChunkPlace]:
    """Returns the chunks of completed files with any of the words, the best first.

    The words have letters and digits only.
    """
    assert all(word.isalnum() for word in words), "other characters have a meaning in a query"
    if not words or not store_numbers:
        return []
    values: dict[str, object]
    if _is_sqlite(connection):
        stores = " OR ".join(map(_mark, sorted(store_numbers)))
        alternatives = " OR ".join(f'"{word}"' for word in words)
        statement, files = _FIND_IN_SQLITE, _FILES_IN_SQLITE
        values = {"query": f"store : ({stores}) AND words : ({alternatives})", "limit": limit}
        if file_numbers is not None:
            values["file_numbers"] = json.dumps(list(file_numbers))
    else:
        statement, files = _FIND_IN_POSTGRES, _FILES_IN_POSTGRES
        values = {"words": " ".join(words), "stores": list(store_numbers), "limit": limit}
        if file_numbers is not None:
            values["file_numbers"] = list(file_numbers)
    query = statement.format(files="" if file_numbers is None else files)
    return [ChunkPlace(*row) for row in connection.execute(text(query), values)]


def _mark(store_number: int) -> str:
    """Returns the word that marks the chunks of a vector store in the index."""
    return f"store{store_number}"


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
