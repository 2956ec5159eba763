"""Drives a runner directly: each sequence has its own blocks, and tests choose the batches."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch, ModelRunner

Logits = NDArray[np.float32]
Rows = Literal["last", "all", "none"]

NUM_SLOTS = 3  # slots of states for each sequence


@dataclass
class Sequence:
    """A sequence: the number of its cached tokens, its blocks, and its slots for states."""

    blocks: list[int]
    slots: tuple[int, ...]
    # The slot of the current state. A slot of another sequence: the sequence continues its state.
    slot: int = 0
    num_cached: int = 0
    shift: int = 0  # the position of the first token


@dataclass
class Driver:
    runner: ModelRunner
    blocks_per_sequence: int = 4
    _num_sequences: int = field(default=0, init=False)

    def sequence(self, shift: int = 0) -> Sequence:
        first = self._num_sequences * self.blocks_per_sequence
        blocks = list(range(first, first + self.blocks_per_sequence))
        first_slot = 1 + self._num_sequences * NUM_SLOTS
        self._num_sequences += 1
        return Sequence(blocks, tuple(range(first_slot, first_slot + NUM_SLOTS)), shift=shift)

    def next_slot(self, sequence: Sequence) -> int:
        """Returns the slot that the next step writes; a test can go back by two steps."""
        own = sequence.slots
        return own[(own.index(sequence.slot) + 1) % len(own)] if sequence.slot in own else own[0]

    def step(self, work: list[tuple[Sequence, list[int]]], *, rows: Rows = "last") -> Logits:
        """Computes the new tokens of each sequence, and returns the logits that `rows` selects."""
        ends = [sequence.num_cached + len(token_ids) for sequence, token_ids in work]
        begins = np.cumsum([0, *(len(token_ids) for _, token_ids in work)])
        tables = [
            sequence.blocks[: -(-end // self.runner.info.block_size)]
            for (sequence, _), end in zip(work, ends, strict=True)
        ]
        positions = [
            np.arange(sequence.num_cached, end) + sequence.shift
            for (sequence, _), end in zip(work, ends, strict=True)
        ]
        sampled_rows = {"last": begins[1:] - 1, "all": np.arange(begins[-1]), "none": begins[:0]}[
            rows
        ]
        slots = [(sequence.slot, self.next_slot(sequence)) for sequence, _ in work]
        batch = ForwardBatch(
            token_ids=np.concatenate([token_ids for _, token_ids in work]).astype(np.int64),
            positions=np.concatenate(positions).astype(np.int64),
            past_lens=np.array([sequence.num_cached for sequence, _ in work], np.int32),
            subsequence_begins=begins.astype(np.int32),
            block_indices=np.concatenate(tables).astype(np.int32),
            block_indices_begins=np.cumsum([0, *map(len, tables)]).astype(np.int32),
            max_context_len=max(ends),
            sampled_rows=sampled_rows.astype(np.int64),
            state_slots=np.array(slots, np.int32) if self.runner.info.num_state_slots else None,
        )
        for (sequence, _), end, (_, written) in zip(work, ends, slots, strict=True):
            sequence.num_cached, sequence.slot = end, written
        return self.runner.run(batch).copy()

    def prefill(self, prompt: list[int], chunk_len: int, shift: int = 0) -> tuple[Sequence, Logits]:
        """Computes a prompt in chunks; returns the sequence and the logits of every position."""
        sequence = self.sequence(shift)
        chunks = cut_into_chunks(prompt, chunk_len)
        return sequence, np.concatenate(
            [self.step([(sequence, chunk)], rows="all") for chunk in chunks]
        )

    def greedy(self, prompt: list[int], num_tokens: int, chunk_len: int = 1 << 30) -> list[int]:
        """Decodes greedily. As in the engine, only the last chunk of the prompt returns logits."""
        sequence = self.sequence()
        *chunks, last = cut_into_chunks(prompt, chunk_len)
        for chunk in chunks:
            self.step([(sequence, chunk)], rows="none")
        return self.continue_greedy(
            sequence, int(self.step([(sequence, last)])[0].argmax()), num_tokens
        )

    def continue_greedy(self, sequence: Sequence, token_id: int, num_tokens: int) -> list[int]:
        token_ids = [token_id]
        while len(token_ids) < num_tokens:
            token_ids.append(int(self.step([(sequence, token_ids[-1:])])[0].argmax()))
        return token_ids


def cut_into_chunks(prompt: list[int], chunk_len: int) -> list[list[int]]:
    return [prompt[start : start + chunk_len] for start in range(0, len(prompt), chunk_len)]


def relative_error(logits: Logits, reference: Logits) -> float:
    return float(np.linalg.norm(logits - reference) / np.linalg.norm(reference))


def median_error(logits: Logits, reference: Logits) -> float:
    """Returns the median of the rows' relative errors.

    The median, because rounding sends single rows of random weights to other experts.
    """
    return float(
        np.median(np.linalg.norm(logits - reference, axis=1) / np.linalg.norm(reference, axis=1))
    )
