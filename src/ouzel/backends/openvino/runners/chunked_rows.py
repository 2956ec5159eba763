"""Divides the rows of a step into chunks, for layers with states (graph/delta_chunks.py).

Sequences with several tokens in the step are computed in chunks. Sequences with a single row go to
the operations that have their states in tables.

The length of the chunks is the one with the least work. A few proposals of some sequences need no
long chunks; in a long prompt each chunk of any length costs one update of the state.

A loop over no chunks costs as much as the loop before it: the runtime hands on the former output,
and everything after the loop is computed again (after a prompt of 512 tokens, a step of
Qwen3.5-0.8B took twice its time). So the first step without chunks gets a dummy chunk of few rows,
and the steps after it cost little.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.chunk_length import LONGEST_CHUNK

Integers = NDArray[np.int32]

# the work of one chunk by its length, relative to a chunk of 32 rows (decision 0018)
CHUNK_WORK = {8: 0.6, 32: 1.0, LONGEST_CHUNK: 1.8}
_SHORTEST = min(CHUNK_WORK)
_NOTHING = {
    "chunk_rows": np.full((1, _SHORTEST), -1, np.int32),
    "chunk_slots": np.zeros(1, np.int32),
}


def is_in_chunks(subsequence_begins: Integers) -> NDArray[np.bool_]:
    """Tells for each sequence whether it has several rows and is computed in chunks."""
    return np.diff(subsequence_begins) > 1


class ChunkedRows:
    """Makes the inputs of successive steps, with a dummy chunk where one saves time."""

    def __init__(self) -> None:
        self._last_size = 0  # rows in chunks of the last step that had any

    def inputs(self, subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
        inputs = chunk_inputs(subsequence_begins, slots)
        if not inputs["chunk_rows"].size and self._last_size > _SHORTEST:
            inputs |= _NOTHING
        self._last_size = inputs["chunk_rows"].size or self._last_size
        return inputs


def chunk_length(lens: Integers) -> int:
    """Returns the length of a step's chunks; `lens` are the rows of each sequence in chunks."""
    return min(
        CHUNK_WORK, key=lambda length: float(np.sum(-(-lens // length))) * CHUNK_WORK[length]
    )


def chunk_inputs(subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
    """Returns the inputs of `Chunking` by name; `slots` are the slots that each sequence reads.

    A chunk that its sequence does not fill has -1 - (the sequence's last row) after its own rows.
    Their results are not used. The slot of a chunk that continues the chunk before it is -1.
    """
    lens, chunked = np.diff(subsequence_begins), is_in_chunks(subsequence_begins)
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
