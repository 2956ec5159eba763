"""Searches the chunks of vector stores by their vectors and their words."""

import asyncio
from collections.abc import Collection, Sequence

import msgspec

from ouzel.hosted_tools.file_search.embedder import Embedder
from ouzel.hosted_tools.file_search.filters import Attribute, Filter
from ouzel.hosted_tools.file_search.fusion import fuse
from ouzel.hosted_tools.file_search.matrices import Matrices
from ouzel.hosted_tools.file_search.records import FileHit, FileQuery
from ouzel.hosted_tools.file_search.words import read_query
from ouzel.store.errors import VectorStoreExpired, VectorStoreNotFound
from ouzel.store.vector_stores.base import VectorStores
from ouzel.store.vector_stores.records import ChunkPlace, SearchedFile, StoredVectorStore

_LEAST_RANKED = 50  # chunks of each list before the fusion
_RANKED_PER_HIT = 4
_attributes = msgspec.json.Decoder(dict[str, Attribute])

Ranking = tuple[float, Sequence[ChunkPlace]]  # a list with its weight


class FileSearch:
    """Belongs to one event loop."""

    def __init__(self, store: VectorStores, embedder: Embedder) -> None:
        self.store = store
        self.embedder = embedder
        self.has_new_files = asyncio.Event()  # wakes the indexer of this server
        self._matrices = Matrices(store)

    async def find_stores(
        self, store_ids: Collection[str], key_id: str | None
    ) -> list[StoredVectorStore]:
        """Returns vector stores of the key. Raises VectorStoreNotFound and VectorStoreExpired."""
        found = []
        for store_id in dict.fromkeys(store_ids):
            stored = await self.store.get(store_id, key_id)
            if stored is None:
                raise VectorStoreNotFound(store_id)
            if stored.is_expired:
                raise VectorStoreExpired(store_id)
            found.append(stored)
        return found

    async def search(self, query: FileQuery, key_id: str | None) -> list[FileHit]:
        """Returns the best chunks, the best first.

        Raises VectorStoreNotFound, VectorStoreExpired and the errors of the embedder.
        """
        stores = await self.find_stores(query.store_ids, key_id)
        await self.store.touch([stored.id for stored in stores])
        files = await self.store.searched_files([stored.id for stored in stores])
        by_number = {file.number: file for some in files.values() for file in some}
        allowed = None
        if query.filter is not None:
            allowed = await asyncio.to_thread(_select, by_number.values(), query.filter)
        limit = max(_LEAST_RANKED, _RANKED_PER_HIT * query.max_hits)
        nearest = await self._find_nearest(query, stores, files, allowed, key_id, limit=limit)
        if query.ranker == "none":
            scored = _join_similar(nearest)
        else:
            rankings = await self._rank(query, nearest, allowed, limit)
            scored = fuse(rankings)
        best = [(place, score) for place, score in scored if score >= query.score_threshold]
        return await self._make_hits(best[: query.max_hits], by_number)

    async def _find_nearest(
        self,
        query: FileQuery,
        stores: Sequence[StoredVectorStore],
        files: dict[str, list[SearchedFile]],
        allowed: frozenset[int] | None,
        key_id: str | None,
        *,
        limit: int,
    ) -> list[list[tuple[ChunkPlace, float]]]:
        """Returns the nearest chunks of each text of the query, over all vector stores."""
        if query.ranker != "none" and not query.weights.embedding_weight:
            return [[] for _ in query.texts]
        joined: list[list[tuple[ChunkPlace, float]]] = [[] for _ in query.texts]
        for model in dict.fromkeys(stored.model for stored in stores):
            vectors = await self.embedder.embed(model, query.texts, "query", key_id=key_id)
            for stored in stores:
                if stored.model != model:
                    continue
                numbers = frozenset(file.number for file in files[stored.id])
                found = await self._matrices.find_nearest(
                    stored.id, numbers, allowed, vectors, limit
                )
                for place, more in enumerate(found):
                    joined[place] += more
        return [sorted(some, key=lambda entry: -entry[1])[:limit] for some in joined]

    async def _rank(
        self,
        query: FileQuery,
        nearest: list[list[tuple[ChunkPlace, float]]],
        allowed: frozenset[int] | None,
        limit: int,
    ) -> list[Ranking]:
        weights = query.weights
        rankings: list[Ranking] = []
        for text, found in zip(query.texts, nearest, strict=True):
            rankings.append((weights.embedding_weight, [place for place, _ in found]))
            if weights.text_weight:
                places = await self.store.find_words(
                    query.store_ids, read_query(text), allowed, limit=limit
                )
                rankings.append((weights.text_weight, places))
        return rankings

    async def _make_hits(
        self, scored: Sequence[tuple[ChunkPlace, float]], files: dict[int, SearchedFile]
    ) -> list[FileHit]:
        chunks = await self.store.chunks([place for place, _ in scored])
        found = {ChunkPlace(chunk.file_number, chunk.position): chunk for chunk in chunks}
        hits = []
        for place, score in scored:
            chunk, file = found.get(place), files.get(place.file_number)
            if chunk is None or file is None:
                continue  # its file was deleted, or completed, during the search
            hits.append(
                FileHit(
                    file_id=file.file_id,
                    filename=file.filename,
                    score=score,
                    attributes=_attributes.decode(file.attributes),
                    position=chunk.position,
                    heading=chunk.heading,
                    text=chunk.text,
                )
            )
        return hits


def _select(files: Collection[SearchedFile], passes: Filter) -> frozenset[int]:
    """Returns the numbers of the files whose attributes pass a filter."""
    return frozenset(file.number for file in files if passes(_attributes.decode(file.attributes)))


def _join_similar(
    nearest: Sequence[Sequence[tuple[ChunkPlace, float]]],
) -> list[tuple[ChunkPlace, float]]:
    """Joins the lists of several texts by the best similarity of each chunk, from 0 to 1."""
    best: dict[ChunkPlace, float] = {}
    for found in nearest:
        for place, similarity in found:
            best[place] = max(best.get(place, 0.0), min(max(similarity, 0.0), 1.0))
    return sorted(best.items(), key=lambda entry: -entry[1])
