"""Holds the states of recurrent layers in tables, the model's inputs `state.<kind>.<layer>`.

A slot holds the state of one sequence in all layers; `engine/cache/state_slots.py` assigns the
slots. Memory is planned for slots first: two for each running sequence, and the slots that hold
cached prompts.
"""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import memory_error
from ouzel.backends.openvino.runners.tables import Table, allocate, find_tables
from ouzel.config import EngineConfig
from ouzel.engine.cache.state_slots import num_sequences, num_slots
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)

STATE_PREFIX = "state."  # prefix of input names
NEXT_PREFIX = "next_"  # outputs have the name of their input after this prefix
# Inputs with this prefix are float32 in every precision and have outputs.
EXACT_PREFIX = "state.delta."
RUNNING_MEMORY_SHARE = 0.4  # share of the free memory for the states of running sequences
KEPT_MEMORY_SHARE = 0.1  # share of the free memory for the states of cached prompts
KEPT_PER_SEQUENCE = 8  # slots for cached prompts per running sequence
_INTERVAL = 2**30  # tokens after which an operation would go on to the sequence's next slot: never


@dataclass(frozen=True)
class StatePlan:
    max_num_seqs: int  # the option, or less if the memory holds fewer
    num_slots: int  # 0: the model has no states
    slot_bytes: int
    num_kept: int = 0  # slots for prompts that begin alike

    @property
    def num_bytes(self) -> int:
        return self.num_slots * self.slot_bytes


def state_tables(compiled: ov.CompiledModel | ov.Model) -> list[Table]:
    return find_tables(compiled, STATE_PREFIX)


def find_state_tables(graph: ov.Model, precision: ov.Type) -> list[Table]:
    """Returns the tables that the graph will have when it is compiled in this precision."""
    others = find_tables(graph, STATE_PREFIX, dtype=precision)
    return find_tables(graph, EXACT_PREFIX) + [
        each for each in others if not each.name.startswith(EXACT_PREFIX)
    ]


def plan_states(tables: list[Table], engine: EngineConfig, free_bytes: int) -> StatePlan:
    """Plans the slots of states. Raises ModelLoadError if the free memory does not hold one
    sequence.
    """
    if not tables:
        return StatePlan(engine.max_num_seqs, 0, 0)
    free_bytes -= scan_bytes(tables, engine.max_num_batched_tokens)
    slot_bytes = sum(table.row_bytes for table in tables)
    output_bytes = sum(table.row_bytes for table in tables if table.name.startswith(EXACT_PREFIX))
    # A sequence has two slots and one output, so a slot takes half an output beside its own bytes.
    needed_bytes = slot_bytes + output_bytes // 2
    num_running = min(
        engine.max_num_seqs, num_sequences(int(free_bytes * RUNNING_MEMORY_SHARE) // needed_bytes)
    )
    if num_running < 1:
        raise ModelLoadError(
            f"the states of a sequence need {num_slots(1, 0) * needed_bytes / 2**30:.2f} GiB, the "
            "memory left is less"
        )
    num_kept = num_kept_states(engine, num_running, slot_bytes, free_bytes)
    return StatePlan(num_running, num_slots(num_running, num_kept), slot_bytes, num_kept)


def scan_bytes(tables: list[Table], num_tokens: int) -> int:
    """Returns the memory of a scan over `num_tokens` whose heads have one value each, as in Mamba.

    Each head has an input, a step and a result in float32 for each token: hundreds of MiB in a
    model of 7 billion weights. Layers compute one after the other, and share the memory.
    """
    heads = [table.row_shape[0] for table in tables if table.row_shape[1:] == (1, 1)]
    return 3 * 4 * max(heads, default=0) * num_tokens


def log_states(plan: StatePlan, engine: EngineConfig) -> None:
    """Logs the planned slots, if the model has states."""
    if plan.max_num_seqs < engine.max_num_seqs:
        logger.warning(
            "max_num_seqs is %d instead of %d: the memory holds no more states",
            plan.max_num_seqs,
            engine.max_num_seqs,
        )
    if plan.num_slots:
        logger.info(
            "states: %d slots of %.2f MiB, %.2f GiB; %d of them for cached prompts",
            plan.num_slots,
            plan.slot_bytes / 2**20,
            plan.num_bytes / 2**30,
            plan.num_kept,
        )


def num_kept_states(
    engine: EngineConfig, num_running: int, slot_bytes: int, free_bytes: int
) -> int:
    """Returns the number of slots for cached prompts."""
    if not engine.prefix_caching:
        return 0
    if engine.state_cache_gib is not None:
        return int(engine.state_cache_gib * 2**30) // slot_bytes
    return min(KEPT_PER_SEQUENCE * num_running, int(free_bytes * KEPT_MEMORY_SHARE) // slot_bytes)


class StateTables:
    """The states of all recurrent layers in tensors; slots index their first dimension."""

    def __init__(self, tables: list[Table], plan: StatePlan) -> None:
        try:
            self.tensors = allocate(tables, plan.num_slots)
        except RuntimeError as error:
            raise memory_error("state_cache_gib", plan.num_bytes) from error
        for tensor in self.tensors.values():
            tensor.data[0] = 0  # new sequences begin with these zeros

    def inputs(self, slots: NDArray[np.int32] | None) -> dict[str, NDArray[np.generic]]:
        """Returns the inputs of the graph's operations by name.

        `slots` are the slots that each sequence reads and writes, [B, 2].
        """
        if not self.tensors:
            return {}
        assert slots is not None, "each sequence needs slots: the model has states"
        num_sequences = len(slots)
        return {
            "state_slots": slots.reshape(-1),
            "state_slots_begins": np.arange(0, 2 * num_sequences + 1, 2, dtype=np.int32),
            "state_interval": np.full(num_sequences, _INTERVAL, np.int32),
        }

    def write(self, name: str, slots: NDArray[np.int32], states: NDArray[np.float32]) -> None:
        """Writes one state into each slot."""
        table = self.tensors[name].data
        table[slots] = states.reshape(len(slots), *table.shape[1:])
