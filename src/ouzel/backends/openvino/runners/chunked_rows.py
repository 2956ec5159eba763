"""Sequences with several tokens in a step are computed in chunks where a layer can;
graph/delta_chunks.py says how.

The others have a single row, for the operations that have their states in tables.

Chunks are as long as makes least work: a few guessed tokens of some sequences need no long ones,
and of a prompt each chunk takes its part of the work for the state, whatever its length.

A loop over no chunks costs what it cost last: the runtime hands on what that gave, and all behind
it is computed again (after a prompt of 512 tokens, a step of Qwen3.5-0.8B took twice its time). So
the first step without chunks gets one that counts for nothing, and those that follow cost little.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.chunk_length import LONGEST_CHUNK

Integers = NDArray[np.int32]

CHUNK_WORK = {
    8: 0.6,
    32: 1.0,
    LONGEST_CHUNK: 1.8,
}  # of one of each length, relative to each other (decision 0018)
_SHORTEST = min(CHUNK_WORK)
_NOTHING = {
    "chunk_rows": np.full((1, _SHORTEST), -1, np.int32),
    "chunk_slots": np.zeros(1, np.int32),
}


def in_chunks(subsequence_begins: Integers) -> NDArray[np.bool_]:
    """Tells which sequences are."""
    return np.diff(subsequence_begins) > 1


class ChunkedRows:
    """Makes the inputs of steps that follow one another."""

    def __init__(self) -> None:
        self._last_size = 0  # of the chunks of the last step that had any, in rows

    def inputs(self, subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
        inputs = chunk_inputs(subsequence_begins, slots)
        if not inputs["chunk_rows"].size and self._last_size > _SHORTEST:
            inputs |= _NOTHING
        self._last_size = inputs["chunk_rows"].size or self._last_size
        return inputs


def chunk_length(lens: Integers) -> int:
    """Returns that of all chunks of a step, whose sequences in chunks have so many rows."""
    return min(
        CHUNK_WORK, key=lambda length: float(np.sum(-(-lens // length))) * CHUNK_WORK[length]
    )


def chunk_inputs(subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
    """Takes the slots that each sequence reads. Returns the inputs that `Chunking` makes, by their
    names.

    Behind the end of its sequence a chunk has -1 - the last row, again and again: they count for
    nothing, and nothing of another sequence comes near. The slot of a chunk that goes on from the
    one before is -1.
    """
    lens, chunked = np.diff(subsequence_begins), in_chunks(subsequence_begins)
    single_rows = subsequence_begins[:-1][~chunked]
    length = chunk_length(lens[chunked])
    num_chunks = -(-lens[chunked] // length)
    ends = np.cumsum(num_chunks)
    begins = ends - num_chunks
    chunk_slots = np.full(num_chunks.sum(), -1, np.int32)
    chunk_slots[begins] = slots[chunked]
    rows = np.repeat(-subsequence_begins[1:][chunked], num_chunks * length)
    own_rows = np.flatnonzero(np.repeat(chunked, lens))
    first_rows = np.repeat(
        begins * length - (np.cumsum(lens[chunked]) - lens[chunked]), lens[chunked]
    )
    places = first_rows + np.arange(len(own_rows))
    rows[places] = own_rows
    answers = np.empty(subsequence_begins[-1], np.int32)
    answers[single_rows] = np.arange(len(single_rows))
    answers[own_rows] = len(single_rows) + places
    return {
        "single_rows": single_rows,
        "single_begins": np.concatenate([[0], np.cumsum(~chunked)]).astype(np.int32),
        "chunk_rows": rows.reshape(-1, length),
        "chunk_slots": chunk_slots,
        "last_chunks": (ends - 1).astype(np.int32),
        "answer_rows": answers,
    }
