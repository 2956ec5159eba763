"""Hands out slots for the states of recurrent layers, which have a fixed size per sequence.

The slots are rows of tables beside the KV cache.

Rules
1. Slot 0 holds zeros: new sequences read it, and no step writes it.
2. A step reads one slot of a sequence and writes one. They are the same only if no other sequence
   holds the slot. So a hit and a fork copy nothing: they read the shared slot and write another.
3. A sequence holds the slot of its present state, and the slot of its newest boundary: the state
   after a full block.
4. A boundary is kept under the key of its block when its sequence ends or is preempted. The
   boundary after a prompt's last full block is kept at once; so is a boundary up to which another
   sequence had the same blocks and no state. A sequence that starts on cached blocks starts at a
   kept state.
5. Kept states are dropped when there are more than `num_kept`, least recently used first, and with
   their block. The `store` of earlier runs may have further states; they become kept states when a
   sequence starts there.
6. Two slots for every running sequence and `num_kept` slots are enough: `take` never fails.
7. A step with proposed tokens writes a slot that no sequence holds, so it needs a spare slot. If
   all proposed tokens are accepted, this slot becomes the state. Otherwise it is released, and the
   accepted tokens are computed again: their rows cost next to nothing, while a state after each
   token would need slots and an operation that returns it.
"""

from collections import OrderedDict

from ouzel.engine.cache.prefix_store import PrefixStore, StoredRow, state_name
from ouzel.engine.state.sequence import Sequence
from ouzel.types.engine_info import EngineInfo


class StateSlots:
    """Allocates state slots to sequences and keeps states for later requests."""

    def __init__(
        self, *, max_num_seqs: int, num_kept: int, store: PrefixStore | None = None
    ) -> None:
        self._store = store
        self._num_kept = num_kept
        self._free = list(range(num_slots(max_num_seqs, num_kept) - 1, 0, -1))
        self._num_holders = [0] * (len(self._free) + 1)
        # block key -> slot; least recently used first
        self._kept: OrderedDict[bytes, int] = OrderedDict()

    @property
    def num_used(self) -> int:
        """Counts the slots that are held, with the kept states."""
        return len(self._num_holders) - 1 - len(self._free)

    def num_spare(self, num_sequences: int) -> int:
        """Counts the free slots that are left after `num_sequences` sequences take one each."""
        return max(0, len(self._free) - num_sequences)

    def unused_slots(self, number: int) -> list[int]:
        """Returns up to `number` free slots for a trial, without allocating them."""
        return self._free[-number:]

    def take(self, sequence: Sequence) -> None:
        """Chooses the slot that the coming step writes for the sequence."""
        assert sequence.next_state_slot == 0, "a step ends with `advance`, `go_back` or `release`"
        is_alone = sequence.state_slot != 0 and self._num_holders[sequence.state_slot] == 1
        is_own = is_alone and not sequence.proposal
        sequence.next_state_slot = self._hold(sequence.state_slot if is_own else self._free.pop())

    def advance(self, sequence: Sequence, *, is_boundary: bool) -> None:
        """Makes the written slot the state after the computed tokens, and the boundary if it is
        one.
        """
        self._give_up(sequence.state_slot)
        sequence.state_slot, sequence.next_state_slot = sequence.next_state_slot, 0
        if is_boundary:
            self._give_up(sequence.boundary_slot)
            sequence.boundary_slot = self._hold(sequence.state_slot)
            sequence.num_boundary_tokens = sequence.num_computed_tokens

    def go_back(self, sequence: Sequence) -> None:
        """Releases a written slot that has not become the state.

        The state before the step stays.
        """
        self._give_up(sequence.next_state_slot)
        sequence.next_state_slot = 0

    def fork(self, parent: Sequence, child: Sequence) -> None:
        child.state_slot = self._hold(parent.state_slot)
        child.boundary_slot = self._hold(parent.boundary_slot)
        child.num_boundary_tokens = parent.num_boundary_tokens

    def release(self, sequence: Sequence) -> None:
        for slot in (sequence.state_slot, sequence.next_state_slot, sequence.boundary_slot):
            self._give_up(slot)
        sequence.state_slot = sequence.next_state_slot = sequence.boundary_slot = (
            sequence.num_boundary_tokens
        ) = 0

    def is_found(self, key: bytes) -> bool:
        """Tells whether a state is kept, or stored by an earlier run."""
        is_stored = (
            self._store is not None and self._num_kept > 0 and state_name(key) in self._store
        )
        return is_stored or key in self._kept

    def kept_slot(self, key: bytes) -> int:
        """Returns the slot of a kept state; 0 if there is none."""
        return self._kept.get(key, 0)

    def keep(self, key: bytes, sequence: Sequence) -> None:
        """Keeps the sequence's boundary as the state after the block with this key."""
        if key in self._kept:
            self._kept.move_to_end(key)
        elif self._num_kept and sequence.boundary_slot:
            self._kept[key] = self._hold(sequence.boundary_slot)
            if len(self._kept) > self._num_kept:
                self.forget(next(iter(self._kept)))

    def fetch(self, key: bytes) -> bool:
        """Makes a found state a kept state.

        Returns False, and forgets the state, if its record is damaged.
        """
        if key in self._kept:
            return True
        assert self._store is not None
        if len(self._kept) == self._num_kept:
            self.forget(next(iter(self._kept)))
        self._kept[key] = self._hold(self._free.pop())
        if self._store.load([StoredRow(state_name(key), b"", self._kept[key])]):
            return True
        self.forget(key)
        return False

    def resume(self, key: bytes, sequence: Sequence, num_tokens: int) -> None:
        """Lets a sequence without slots continue from the state kept after `num_tokens` tokens."""
        self._kept.move_to_end(key)
        sequence.state_slot = self._hold(self._kept[key])
        sequence.boundary_slot = self._hold(self._kept[key])
        sequence.num_boundary_tokens = num_tokens

    def forget(self, key: bytes) -> None:
        """Drops the kept state after a block that was evicted."""
        if key in self._kept:
            if self._store is not None:
                self._store.withdraw(state_name(key))
            self._give_up(self._kept.pop(key))

    def _hold(self, slot: int) -> int:
        if slot:
            self._num_holders[slot] += 1
        return slot

    def _give_up(self, slot: int) -> None:
        if slot:
            self._num_holders[slot] -= 1
            if self._num_holders[slot] == 0:
                self._free.append(slot)


def state_slots(info: EngineInfo, store: PrefixStore | None = None) -> StateSlots | None:
    """Makes the slots of an engine; None for a model without states."""
    if not info.num_state_slots:
        return None
    num_kept = info.num_state_slots - num_slots(info.max_num_seqs, 0)
    return StateSlots(max_num_seqs=info.max_num_seqs, num_kept=num_kept, store=store)


def num_slots(max_num_seqs: int, num_kept: int) -> int:
    """Returns the number of slots that the tables need, with slot 0."""
    return 1 + 2 * max_num_seqs + num_kept


def num_sequences(num_slots: int) -> int:
    """Returns how many sequences can run with so many slots if no state is kept."""
    return (num_slots - 1) // 2
