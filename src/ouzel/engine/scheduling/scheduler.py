"""Decides which tokens each step computes.

Rules
1. Decodes first: every running sequence with one token to compute gets it, in `Sequence.order`.
2. The rest of `max_num_batched_tokens` goes to prompts, of running and waiting sequences alike. A
   better priority goes first. Among equal priorities a quarter is reserved for the oldest prompt,
   and the prompts are served by their number of missing tokens (`Sequence.num_missing_tokens`), the
   fewest first: a short prompt waits for no long prompt, and every prompt is the oldest after at
   most four times the steps that all prompts before it take one after the other. A sequence past
   its prompt (a grammar forced several tokens) misses no tokens, so it goes first.
3. A sequence starts only when blocks for all of its present tokens are free. So prefill never runs
   out of blocks; decode can. The oldest prompt is tried first. While it waits for blocks or places,
   another sequence starts only if all sequences after the oldest in `Sequence.order`, together with
   the new one, leave the oldest its share. Those sequences may grow: as soon as only newcomers
   among them prevent the oldest from starting, they are preempted, the last first. So the oldest
   waits for earlier arrivals and for better priorities, never for newcomers. Sequences that already
   prefill continue.
4. A decode without a free block preempts the running sequence that is last in order (possibly
   itself): its blocks are released, it waits, and later computes everything again, with its own
   output.
5. A waiting sequence whose next block is computed for another sequence in this step waits one step
   and then shares the block.
6. A chunk ends where `chunks` allows: a prompt that cannot get a whole block waits, unless it is
   the oldest.
7. A prompt with requested logprobs is computed in chunks that score at most MAX_SCORED_ROWS tokens,
   over all such prompts of a step: this bounds the memory of logits and the time of scoring. Half
   of the rows are reserved for the oldest prompt. Tokens beyond the limit are left to the other
   prompts, and an unscored token is never taken from the prefix cache.
8. `running` and `waiting` are sorted by `Sequence.order`; an unfinished sequence is in exactly one
   of them.
9. The beams of a search run together or not at all. If one beam is preempted, all are, and the
   search starts again from its prompt as soon as as many blocks are free as it had (see `beam`).
10. Requests in the background get at most the tokens of a step that `background` allows. A prompt
   that is not in the background may preempt them to start.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

import msgspec

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.background import Background
from ouzel.engine.scheduling.chunks import Chunks
from ouzel.engine.scheduling.room import Room
from ouzel.engine.state.sequence import Sequence, SequenceStatus

_by_order = attrgetter("order")
_by_priority = attrgetter("request.priority")
_by_missing = attrgetter("num_missing_tokens")


class Scheduled(msgspec.Struct, frozen=True):
    """A sequence of the coming step and the number of its tokens to compute."""

    sequence: Sequence
    num_new_tokens: int
    scored_rows: range = range(0)  # positions whose logits score the prompt token after them

    @property
    def completes_prompt(self) -> bool:
        """Tells whether the step computes the last known token, so that the next token can be
        sampled.
        """
        return self.num_new_tokens == self.sequence.num_uncomputed_tokens


class Scheduler:
    """Holds the waiting and the running sequences, and schedules each step."""

    def __init__(
        self,
        blocks: BlockManager,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        chunks: Chunks | None = None,
        background: Background | None = None,
    ) -> None:
        self._blocks = blocks
        self.background = background or Background(max_num_batched_tokens)
        self._chunks = chunks or Chunks(blocks)
        self._max_num_seqs = max_num_seqs
        assert max_num_batched_tokens >= max_num_seqs, "a decode of all must fit"
        self._max_num_batched_tokens = max_num_batched_tokens
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0

    def add(self, sequence: Sequence) -> None:
        sequence.status = SequenceStatus.WAITING
        sequence.num_expected_tokens = self._blocks.num_cached_tokens(sequence)
        insort(self.waiting, sequence, key=_by_order)

    def remove(self, sequence: Sequence) -> None:
        """Removes a finished sequence or a discarded beam, and releases its blocks."""
        sequence.status = SequenceStatus.FINISHED
        for queue in (self.waiting, self.running):
            if sequence in queue:
                queue.remove(sequence)
        self._blocks.release(sequence)

    def start_fork(self, parent: Sequence, child: Sequence) -> tuple[int, int] | None:
        """Starts a further choice on the parent's computed prompt.

        Returns the (source, destination) block to copy.
        """
        copy = self._blocks.fork(parent, child)
        child.num_cached_tokens = parent.num_cached_tokens
        child.scheduled_at = parent.scheduled_at
        self._run(child)
        return copy

    def can_fork(self) -> bool:
        return _num_places(self.running) < self._max_num_seqs and self._blocks.can_fork()

    def make_room_to_fork(self, beam: Sequence) -> bool:
        """Frees a block by preemption from the end.

        Returns False if the beam itself was preempted.
        """
        while not self._blocks.can_fork():
            self._preempt(self.running[-1])
            if beam.status is not SequenceStatus.RUNNING:
                return False
        return True

    def schedule(self) -> list[Scheduled]:
        """Returns the work of the next step; empty if no sequence can run."""
        num_background = self.background.num_tokens(has_others=self._has_foreground())
        scheduled = self._schedule(num_background)
        if not scheduled and not num_background:  # the other requests cannot use this step
            scheduled = self._schedule(self.background.num_limited_tokens)
        return scheduled

    def _has_foreground(self) -> bool:
        """Tells whether any sequence is not in the background; such sequences come first."""
        return any(queue and not _is_background(queue[0]) for queue in (self.running, self.waiting))

    def _schedule(self, num_background: int) -> list[Scheduled]:
        """Returns the work of a step with at most `num_background` tokens in the background."""
        scheduled = self._schedule_decodes(num_background)
        num_left = num_background - sum(_is_background(entry.sequence) for entry in scheduled)
        self._schedule_prefills(
            scheduled, self._max_num_batched_tokens - len(scheduled), max(num_left, 0)
        )
        # Starting a prompt may have preempted a sequence that was scheduled before (rule 3).
        return [entry for entry in scheduled if entry.sequence.status is SequenceStatus.RUNNING]

    def _schedule_decodes(self, num_background: int) -> list[Scheduled]:
        scheduled: list[Scheduled] = []
        for sequence in tuple(self.running):
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # preempted earlier in this step
            if _is_background(sequence):
                if num_background <= 0:
                    break  # all later ones are in the background too
                num_background -= 1
            if sequence.num_uncomputed_tokens > 1:
                # Forced tokens of a grammar may need more blocks than the sequence started with.
                self._make_room(sequence)
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
        """Allocates the block of the next token, by preemption from the end if necessary.

        Returns False if `sequence` itself was preempted.
        """
        while not self._blocks.allocate(sequence, sequence.num_tokens):
            self._preempt(self.running[-1])
            if sequence.status is not SequenceStatus.RUNNING:
                return False
        return True

    def _schedule_prefills(
        self, scheduled: list[Scheduled], num_tokens: int, num_background: int
    ) -> None:
        prefilling = [sequence for sequence in self.running if sequence.num_uncomputed_tokens > 1]
        candidates = (
            sorted(prefilling + self.waiting, key=_by_order) if prefilling else list(self.waiting)
        )
        if not candidates:
            return
        room = Room(
            num_tokens,
            num_free_places=self._max_num_seqs - _num_places(self.running),
            num_background=num_background,
        )
        for _, equals in groupby(candidates, key=_by_priority):
            prompts = list(equals)
            if _is_background(prompts[0]):
                room.num_tokens = min(room.num_tokens, room.num_background)
            if room.num_tokens <= 0:
                return
            num_tokens = room.num_tokens
            self._share(prompts, room, scheduled)
            if _is_background(prompts[0]):
                room.num_background -= num_tokens - room.num_tokens

    def _share(self, prompts: list[Sequence], room: Room, scheduled: list[Scheduled]) -> None:
        """Shares the room among the prompts of one priority (rule 2)."""
        oldest = next((sequence for sequence in prompts if not sequence.is_past_prompt), prompts[0])
        at_least = min(room.num_tokens, max(room.num_tokens // 4, self._blocks.block_size))
        num_kept_tokens = self._portion(oldest, at_least, room.num_rows // 2, room, is_oldest=True)
        num_kept_rows = len(oldest.scored_rows(num_kept_tokens))
        # Prompts with the same beginning wait for these blocks (rule 5).
        self._blocks.expect_blocks(oldest, num_kept_tokens)
        for sequence in sorted(prompts, key=_by_missing):
            if sequence is not oldest:
                limit, num_rows = room.num_tokens - num_kept_tokens, room.num_rows - num_kept_rows
                num_new_tokens = self._portion(sequence, limit, num_rows, room) if limit > 0 else 0
            elif num_kept_tokens:
                num_new_tokens = self._chunks.length(
                    oldest, room.num_tokens, room.num_rows, is_oldest=True
                )
                num_kept_tokens = num_kept_rows = 0
            else:
                continue
            if num_new_tokens:
                scored_rows = sequence.scored_rows(num_new_tokens)
                self._blocks.expect_blocks(sequence, num_new_tokens)
                scheduled.append(Scheduled(sequence, num_new_tokens, scored_rows))
                room.num_tokens -= num_new_tokens
                room.num_rows -= len(scored_rows)

    def _portion(
        self,
        sequence: Sequence,
        num_tokens: int,
        num_rows: int,
        room: Room,
        *,
        is_oldest: bool = False,
    ) -> int:
        """Returns the number of tokens to compute, at most `num_tokens`.

        Starts a waiting sequence.
        """
        if sequence.is_finished or (sequence.num_unscored_tokens and num_rows <= 0):
            return 0  # rule 7, or a beam of a search that rule 3 has just preempted
        if sequence.status is SequenceStatus.RUNNING:
            return self._chunks.length(sequence, num_tokens, num_rows, is_oldest=is_oldest)
        if not is_oldest and num_tokens < min(self._blocks.block_size, sequence.num_missing_tokens):
            return 0  # rule 6
        overtakers = self._overtakers(sequence, is_oldest=is_oldest)
        if not (
            self._may_start(sequence, overtakers, room) and self._blocks.share_prefix(sequence)
        ):
            return 0
        num_new_tokens = self._chunks.length(sequence, num_tokens, num_rows, is_oldest=is_oldest)
        if num_new_tokens and self._start(sequence, overtakers, room):
            return num_new_tokens
        self._blocks.release(sequence)
        sequence.num_computed_tokens = 0
        if num_new_tokens:
            room.hold_up(sequence)
        return 0

    def _may_start(self, sequence: Sequence, overtakers: list[Sequence], room: Room) -> bool:
        if not room.may_start:
            return False
        num_free_places = room.num_free_places + _num_places(overtakers)
        if sequence.num_places > num_free_places or not self._leaves_room(sequence, room.held_up):
            room.hold_up(sequence)
            return False
        return True

    def _leaves_room(self, sequence: Sequence, held_up: Sequence | None) -> bool:
        """Tells whether the held-up sequence keeps its share while later ones run (rule 3)."""
        if held_up is None:
            return True
        later = self._running_after(held_up)
        num_places = _num_places((*later, sequence, held_up))
        num_blocks = sum(len(each.block_table) for each in later)
        num_blocks += self._num_blocks(sequence) + self._num_blocks(held_up)
        return num_places <= self._max_num_seqs and num_blocks <= self._blocks.num_blocks

    def _running_after(self, sequence: Sequence) -> list[Sequence]:
        return self.running[bisect_right(self.running, sequence.order, key=_by_order) :]

    def _overtakers(self, sequence: Sequence, *, is_oldest: bool) -> list[Sequence]:
        """Returns the running sequences that may be preempted to start a waiting one.

        They are later in order. For the oldest, they arrived later too (rule 3); for every sequence
        that is not in the background, they are in the background (rule 10).
        """
        if not is_oldest and (not self.running or not _is_background(self.running[-1])):
            return []
        return [
            each
            for each in self._running_after(sequence)
            if (is_oldest and each.arrival > sequence.arrival)
            or (_is_background(each) and not _is_background(sequence))
        ]

    def _fits(self, sequence: Sequence, others: list[Sequence], room: Room) -> bool:
        """Tells whether the sequence finds places and blocks once `others` have released theirs."""
        if sequence.num_places > room.num_free_places + _num_places(others):
            return False
        num_missing = self._blocks.num_missing_blocks(sequence, sequence.num_tokens)
        if len(self.running) > len(others):
            num_missing = max(num_missing, sequence.num_blocks_wanted - len(sequence.block_table))
        num_free = self._blocks.num_free_blocks
        if num_missing <= num_free:
            return True
        return num_missing <= num_free + self._blocks.num_releasable(others)

    def _preempt_for(self, sequence: Sequence, overtakers: list[Sequence], room: Room) -> None:
        for each in reversed(overtakers):
            if self._fits(sequence, [], room):
                return
            # Another beam of its search may have taken it along.
            if each.status is SequenceStatus.RUNNING:
                self._preempt(each)
                room.num_free_places = self._max_num_seqs - _num_places(self.running)

    def _num_blocks(self, sequence: Sequence) -> int:
        return max(sequence.num_blocks_wanted, -(-sequence.num_tokens // self._blocks.block_size))

    def _start(self, sequence: Sequence, overtakers: list[Sequence], room: Room) -> bool:
        if overtakers and self._fits(sequence, overtakers, room):
            self._preempt_for(sequence, overtakers, room)
        if not (
            self._fits(sequence, [], room) and self._blocks.allocate(sequence, sequence.num_tokens)
        ):
            return False
        room.num_free_places -= sequence.num_places
        # Tokens of a preempted sequence's own output do not count as looked-up prompt.
        if sequence.scheduled_at is None:
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
        first = beams[0].make_beam()
        first.num_blocks_wanted = num_blocks
        for beam in beams:
            self.remove(beam)
        beams[:] = [first]
        self.add(first)


def _num_places(sequences: Iterable[Sequence]) -> int:
    return sum(sequence.num_places for sequence in sequences)


def _is_background(sequence: Sequence) -> bool:
    return sequence.request.is_background
