"""The rows of a step are arranged by adapter; what is added to them is arranged as they are."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import ROWS, SAMPLED, PartRange

_NOWHERE = 2**30  # a row that no product has: the runtime's Gather makes zeros of it

Slots = NDArray[np.int32]
Indices = NDArray[np.int32]


def used_slots(slots: Slots | None) -> range:
    """Returns the slots from the first to the last one that rows use; it is empty where none does."""
    used = None if slots is None else slots[slots >= 0]
    return (
        range(0) if used is None or not used.size else range(int(used.min()), int(used.max()) + 1)
    )


def row_inputs(
    slots: Slots | None, num_rows: int, sampled_rows: NDArray[np.int64], parts: Iterable[PartRange]
) -> dict[str, NDArray[np.generic]]:
    """Takes the slot of each row, or None where no row has an adapter, and which parts matrices
    have of their groups'.

    Groups' products are [slots, parts, W, rows of a part].
    """
    used = used_slots(slots)
    inputs: dict[str, NDArray[np.generic]] = {}
    own = np.full(num_rows, -1, np.int32) if slots is None else slots
    for suffix, each in (("", own), (SAMPLED, own[sampled_rows])):
        rows, places = _arranged(each, used)
        inputs[ROWS + suffix] = rows
        for part_range in parts:
            inputs[part_range.answers(suffix)] = _answers(places, rows.shape[1], part_range)
    return inputs


def _answers(places: Indices, width: int, parts: PartRange) -> Indices:
    """Returns [rows], or of several parts [rows, parts]."""
    first = places // width * (width * parts.num_in_group) + places % width
    own = first[:, None] + np.arange(parts.begin, parts.end, dtype=np.int32) * width
    own[places == _NOWHERE] = _NOWHERE
    return own if len(parts) > 1 else own[:, 0]


def _arranged(slots: Slots, used: range) -> tuple[Indices, Indices]:
    """Returns the rows of each used slot, filled up with others where there are fewer than of
    another; and where what is added to each row is among these.
    """
    if not used:  # one that adds zeros, which it is cheapest to add to all rows alike
        return np.zeros((1, 1), np.int32), np.zeros(1, np.int32)
    adapted = np.flatnonzero(slots >= 0)
    adapted = adapted[np.argsort(slots[adapted], kind="stable")]
    groups = slots[adapted] - used.start
    counts = np.bincount(groups, minlength=len(used))
    width = max(int(counts.max(initial=0)), 1)
    places = (
        groups * width + np.arange(len(adapted)) - np.repeat(np.cumsum(counts) - counts, counts)
    )
    rows = np.zeros(len(used) * width, np.int32)
    rows[places] = adapted
    answers = np.full(len(slots), _NOWHERE, np.int32)
    answers[adapted] = places
    return rows.reshape(len(used), width), answers
