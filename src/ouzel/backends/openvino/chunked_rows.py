"""Sequences with several tokens in a step are computed in chunks where a layer can; graph/delta_chunks.py says how.

The others have a single row, for the operations that have their states in tables.

A loop over no chunks costs what it cost last: the runtime hands on what that gave, and all behind it is computed again
(after a prompt of 512 tokens, a step of Qwen3.5-0.8B took twice its time). So the first step without chunks gets one
that counts for nothing, and those that follow cost little.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.delta_chunks import CHUNK_LENGTH

Integers = NDArray[np.int32]

_NOTHING = {"chunk_rows": np.full(CHUNK_LENGTH, -1, np.int32), "chunk_slots": np.zeros(1, np.int32)}


def in_chunks(subsequence_begins: Integers) -> NDArray[np.bool_]:
    """Tells which sequences are."""
    return np.diff(subsequence_begins) > 1


class ChunkedRows:
    """Makes the inputs of steps that follow one another."""

    def __init__(self) -> None:
        self._last_number = 0  # of the chunks of the last step that had any

    def inputs(self, subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
        inputs = chunk_inputs(subsequence_begins, slots)
        if not inputs["chunk_slots"].size and self._last_number > 1:
            inputs |= _NOTHING
        self._last_number = inputs["chunk_slots"].size or self._last_number
        return inputs


def chunk_inputs(subsequence_begins: Integers, slots: Integers) -> dict[str, Integers]:
    """Takes the slots that each sequence reads. Returns the inputs that `Chunking` makes, by their names.

    Behind the end of its sequence a chunk has -1 - the last row, again and again: they count for nothing, and nothing
    of another sequence comes near. The slot of a chunk that goes on from the one before is -1.
    """
    lens, chunked = np.diff(subsequence_begins), in_chunks(subsequence_begins)
    single_rows = subsequence_begins[:-1][~chunked]
    num_chunks = -(-lens[chunked] // CHUNK_LENGTH)
    ends = np.cumsum(num_chunks)
    begins = ends - num_chunks
    chunk_slots = np.full(num_chunks.sum(), -1, np.int32)
    chunk_slots[begins] = slots[chunked]
    rows = np.repeat(-subsequence_begins[1:][chunked], num_chunks * CHUNK_LENGTH)
    own_rows = np.flatnonzero(np.repeat(chunked, lens))
    first_rows = np.repeat(begins * CHUNK_LENGTH - (np.cumsum(lens[chunked]) - lens[chunked]), lens[chunked])
    places = first_rows + np.arange(len(own_rows))
    rows[places] = own_rows
    answers = np.empty(subsequence_begins[-1], np.int32)
    answers[single_rows] = np.arange(len(single_rows))
    answers[own_rows] = len(single_rows) + places
    return {
        "single_rows": single_rows,
        "single_begins": np.concatenate([[0], np.cumsum(~chunked)]).astype(np.int32),
        "chunk_rows": rows,
        "chunk_slots": chunk_slots,
        "last_chunks": (ends - 1).astype(np.int32),
        "answer_rows": answers,
    }
