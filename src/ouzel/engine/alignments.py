"""Gathers the queries of prompts whose tokens are aligned with the sound."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import AudioRunner
from ouzel.engine.scheduling.audio_encoder import AudioEncoder
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.state.sequence import Sequence

Rows = NDArray[np.float32]


class Alignments:
    def __init__(self, runner: AudioRunner, audio: AudioEncoder) -> None:
        self._runner = runner
        self._audio = audio
        self._queries: dict[Sequence, Rows] = {}  # rows of the first computed tokens

    def note(self, scheduled: Iterable[Scheduled]) -> None:
        """Keeps the queries that the last step computed for prompts to align."""
        for gone in [each for each in self._queries if each.is_finished]:
            del self._queries[gone]
        begin = 0
        for entry in scheduled:
            end = begin + entry.num_new_tokens
            if entry.sequence.request.num_aligned_frames:
                self._keep(entry.sequence, self._runner.read_cross_queries()[begin:end])
            begin = end

    def _keep(self, sequence: Sequence, rows: Rows) -> None:
        """Keeps rows behind the rows of the tokens before them.

        A preempted prompt goes on where its cached blocks end, and computes later tokens again.
        """
        earlier = self._queries.get(sequence, rows[:0])[: sequence.num_computed_tokens]
        self._queries[sequence] = np.concatenate([earlier, rows])

    def finish(self, sequence: Sequence) -> bytes | None:
        """Returns the alignment of a sequence whose prompt is computed, None if none is wanted.

        It is little-endian float32, [prompt tokens, aligned frames].
        """
        queries = self._queries.pop(sequence, None)
        if queries is None:
            return None
        slot, num_frames = self._audio.slot(sequence), sequence.request.num_aligned_frames
        matrix = self._runner.align(queries, slot, num_frames)
        return matrix.astype("<f4").tobytes()
