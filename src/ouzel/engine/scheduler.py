"""The scheduler decides what one step computes.

Rules
1. Decodes first: every running sequence with one token to compute gets it, in `Sequence.order`.
2. What is left of `max_num_batched_tokens` goes to prefill chunks, of running and waiting sequences alike, in
   `Sequence.order`. So a long prompt delays the others' next token by one chunk at most.
3. A sequence starts only when blocks for all of its present tokens are free. Prefill therefore never runs out of
   blocks; decode can. Nobody overtakes one that waits for blocks, so nobody starves; what already prefills goes on.
4. A decode without a free block preempts the running sequence that comes last in order (possibly itself): its blocks
   are released, it waits, and later computes everything again, its own tokens included.
5. A waiting sequence whose next block is computed for another one in this very step waits for it, and then shares it.
6. A chunk that is not a prompt's last ends with a block if it can: a quantised cache then holds the very values that
   prefill in one chunk leaves there, and the block can be shared at once.
7. A prompt whose logprobs are asked for is computed in chunks that score MAX_SCORED_ROWS of its tokens at most, over
   all such prompts of a step: so much logits memory and sampling time it costs its neighbours. What it does not score
   it leaves to the other prompts, and it takes no unscored token from the prefix cache.
8. `running` and `waiting` are sorted by `Sequence.order`; an unfinished sequence is in exactly one of them.
9. The beams of a search run together or not at all. One that must go takes the others with it, and the search starts
   again from its prompt, as soon as there are as many free blocks as it had (see `beam`).
"""

from bisect import insort
from operator import attrgetter

import msgspec

from ouzel.engine.block_manager import BlockManager
from ouzel.engine.sequence import Sequence, SequenceStatus

MAX_SCORED_ROWS = 64  # 39 MB of logits with Qwen3's vocabulary

_by_order = attrgetter("order")


class Scheduled(msgspec.Struct, frozen=True):
    sequence: Sequence
    num_new_tokens: int
    scored_rows: range = range(0)  # positions whose logits score the prompt token after each

    @property
    def completes_prompt(self) -> bool:
        """Tells whether the step computes the last known token, so that the next one can be sampled."""
        return self.num_new_tokens == self.sequence.num_uncomputed_tokens


class Scheduler:
    """Holds the waiting and the running sequences."""

    def __init__(self, blocks: BlockManager, *, max_num_seqs: int, max_num_batched_tokens: int) -> None:
        self._blocks = blocks
        self._max_num_seqs = max_num_seqs
        assert max_num_batched_tokens >= max_num_seqs, "a decode of all must fit"
        self._max_num_batched_tokens = max_num_batched_tokens
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0

    def add(self, sequence: Sequence) -> None:
        sequence.status = SequenceStatus.WAITING
        insort(self.waiting, sequence, key=_by_order)

    def remove(self, sequence: Sequence) -> None:
        """Forgets a finished sequence, or a beam that goes no further, and releases its blocks."""
        sequence.status = SequenceStatus.FINISHED
        for queue in (self.waiting, self.running):
            if sequence in queue:
                queue.remove(sequence)
        self._blocks.release(sequence)

    def start_fork(self, parent: Sequence, child: Sequence) -> tuple[int, int] | None:
        """Lets a further choice run on the parent's computed prompt; returns a (source, destination) block to copy."""
        copy = self._blocks.fork(parent, child)
        child.num_cached_tokens = parent.num_cached_tokens
        child.scheduled_at = parent.scheduled_at
        self._run(child)
        return copy

    def can_fork(self) -> bool:
        return self._num_places() < self._max_num_seqs and self._blocks.can_fork()

    def make_room_to_fork(self, beam: Sequence) -> bool:
        """Frees a block, preempting from the end; returns False when the beam itself had to go."""
        while not self._blocks.can_fork():
            self._preempt(self.running[-1])
            if beam.status is not SequenceStatus.RUNNING:
                return False
        return True

    def schedule(self) -> list[Scheduled]:
        """Returns the next step's work, empty when nothing can run."""
        scheduled = self._schedule_decodes()
        self._schedule_prefills(scheduled, self._max_num_batched_tokens - len(scheduled))
        return scheduled

    def _schedule_decodes(self) -> list[Scheduled]:
        scheduled = []
        for sequence in tuple(self.running):
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # preempted a moment ago
            if sequence.num_uncomputed_tokens > 1:
                self._make_room(sequence)  # tokens that a grammar forced may need more blocks than it started with
                continue
            together = sequence.beams
            if not together:
                if self._make_room(sequence):
                    scheduled.append(self._decode(sequence))
            elif together[0] is sequence and all(map(self._make_room, together)):
                scheduled += map(self._decode, together)
        return scheduled

    def _decode(self, sequence: Sequence) -> Scheduled:
        self._blocks.expect_blocks(sequence, 1)
        return Scheduled(sequence, 1)

    def _make_room(self, sequence: Sequence) -> bool:
        """Allocates the next token's block, preempting from the end; returns False when `sequence` itself had to go."""
        while not self._blocks.allocate(sequence, sequence.num_tokens):
            self._preempt(self.running[-1])
            if sequence.status is not SequenceStatus.RUNNING:
                return False
        return True

    def _schedule_prefills(self, scheduled: list[Scheduled], num_tokens_left: int) -> None:
        prefilling = [sequence for sequence in self.running if sequence.num_uncomputed_tokens > 1]
        candidates = sorted(prefilling + self.waiting, key=_by_order) if prefilling else list(self.waiting)
        num_rows_left = MAX_SCORED_ROWS
        num_free_places = self._max_num_seqs - self._num_places() if candidates else 0
        may_start = True
        for sequence in candidates:
            if num_tokens_left <= 0:
                return
            if sequence.num_unscored_tokens and num_rows_left == 0:
                continue  # rule 7
            if sequence.status is SequenceStatus.WAITING:
                may_start = may_start and sequence.num_places <= num_free_places
                if not may_start:
                    continue  # those that prefill go on: they hold the blocks that others wait for
                if not self._blocks.share_prefix(sequence):
                    continue  # rule 5
                if not self._start(sequence):
                    self._blocks.release(sequence)
                    sequence.num_computed_tokens = 0
                    may_start = False
                    continue
                num_free_places -= sequence.num_places
            num_new_tokens = self._chunk(sequence, min(num_tokens_left, _scoring_limit(sequence, num_rows_left)))
            scored_rows = _scored_rows(sequence, num_new_tokens)
            self._blocks.expect_blocks(sequence, num_new_tokens)
            scheduled.append(Scheduled(sequence, num_new_tokens, scored_rows))
            num_tokens_left -= num_new_tokens
            num_rows_left -= len(scored_rows)

    def _chunk(self, sequence: Sequence, num_tokens_left: int) -> int:
        """Returns how many of the sequence's tokens this step computes, at least one (rule 6)."""
        num_uncomputed = sequence.num_uncomputed_tokens
        if num_uncomputed <= num_tokens_left:
            return num_uncomputed
        begin, block_size = sequence.num_computed_tokens, self._blocks.block_size
        num_aligned = (begin + num_tokens_left) // block_size * block_size - begin
        return num_aligned if num_aligned > 0 else num_tokens_left

    def _num_places(self) -> int:
        return sum(sequence.num_places for sequence in self.running)

    def _start(self, sequence: Sequence) -> bool:
        if self.running and sequence.num_blocks_wanted > self._blocks.num_free_blocks + len(sequence.block_table):
            return False
        if not self._blocks.allocate(sequence, sequence.num_tokens):
            return False
        if sequence.scheduled_at is None:  # else it was preempted, and its own tokens are no prompt
            sequence.mark_scheduled()
            self._blocks.count_lookup(sequence)
        self.waiting.remove(sequence)
        self._run(sequence)
        return True

    def _run(self, sequence: Sequence) -> None:
        sequence.status = SequenceStatus.RUNNING
        insort(self.running, sequence, key=_by_order)

    def _preempt(self, sequence: Sequence) -> None:
        self.num_preemptions += 1
        if sequence.beams:
            self._preempt_search(sequence.beams)
            return
        self.running.remove(sequence)
        self._blocks.release(sequence)
        sequence.num_computed_tokens = 0
        self.add(sequence)

    def _preempt_search(self, beams: list[Sequence]) -> None:
        num_blocks = len({block for beam in beams for block in beam.block_table})
        first = beams[0].anew()
        first.num_blocks_wanted = num_blocks
        for beam in beams:
            self.remove(beam)
        beams[:] = [first]
        self.add(first)


def _scoring_limit(sequence: Sequence, num_rows_left: int) -> int:
    """Returns how many tokens can be computed without scoring more than `num_rows_left` of them (rule 7)."""
    if sequence.num_unscored_tokens <= num_rows_left:
        return sequence.num_uncomputed_tokens
    return sequence.first_unscored_row + num_rows_left - sequence.num_computed_tokens


def _scored_rows(sequence: Sequence, num_new_tokens: int) -> range:
    """Returns which of the next `num_new_tokens` positions score the prompt token after them for the first time."""
    end = sequence.num_computed_tokens + num_new_tokens
    return range(sequence.first_unscored_row, min(end, sequence.num_prompt_tokens - 1))
