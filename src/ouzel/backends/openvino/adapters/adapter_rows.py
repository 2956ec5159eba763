"""Arranges the rows of a step by adapter, and maps the adapters' products back to the rows."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import ROWS, SAMPLED, SLOTS, PartRange

_NOWHERE = 2**30  # an index out of range: the runtime's Gather gives zeros for it

Slots = NDArray[np.int32]
Indices = NDArray[np.int32]


def used_slots(slots: Slots | None) -> range:
    """Returns the slots from the first to the last slot that rows use, an empty range if
    none does.
    """
    if slots is None:
        return range(0)
    used = slots[slots >= 0]
    return range(int(used.min()), int(used.max()) + 1) if used.size else range(0)


def row_inputs(
    slots: Slots | None, num_rows: int, sampled_rows: NDArray[np.int64], parts: Iterable[PartRange]
) -> dict[str, NDArray[np.generic]]:
    """Returns the inputs that arrange a step's rows, by name.

    `slots` has the slot of each row, -1 without an adapter; None means that no row has an adapter.
    `parts` are the ranges of parts that matrices have in their groups. The product of a group is
    [slots, parts, W, rows of a part], with W rows of the step for each slot.
    """
    used = used_slots(slots)
    inputs: dict[str, NDArray[np.generic]] = {}
    own = np.full(num_rows, -1, np.int32) if slots is None else slots
    for suffix, each in (("", own), (SAMPLED, own[sampled_rows])):
        rows, places = _arrange(each, used)
        inputs[ROWS + suffix] = rows
        inputs[SLOTS + suffix] = _find_slots(each, used)
        for part_range in parts:
            inputs[part_range.answers(suffix)] = _answers(places, rows.shape[1], part_range)
    return inputs


def _answers(places: Indices, width: int, parts: PartRange) -> Indices:
    """Returns where each row finds its product: [rows], or for several parts [rows, parts]."""
    first = places // width * (width * parts.num_in_group) + places % width
    own = first[:, None] + np.arange(parts.begin, parts.end, dtype=np.int32) * width
    own[places == _NOWHERE] = _NOWHERE
    return own if len(parts) > 1 else own[:, 0]


def _find_slots(slots: Slots, used: range) -> Indices:
    """Returns the place of each row's slot among the used slots; one row if none is used."""
    if not used:
        return np.full(1, _NOWHERE, np.int32)
    return np.where(slots >= 0, slots - used.start, _NOWHERE).astype(np.int32)


def _arrange(slots: Slots, used: range) -> tuple[Indices, Indices]:
    """Returns the rows of each used slot, [slots, W], and the place of each row's product in it.

    W is the largest number of rows of a slot; slots with fewer rows are filled up with row 0.
    """
    # no row has an adapter: one product of zeros serves all rows, which is the cheapest
    if not used:
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
