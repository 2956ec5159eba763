"""Shards become batches: items whose pictures have one size, parts of conversations padded to similar lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.demo_vision.encoder import Pictures
from training.demo_vision.model import Rows
from training.demo_vision.sizes import TOKEN_SIDE

NUM_GROUPS = 6  # of parts, by length

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    token_ids: Tensor  # [tokens], of all parts, one after the other
    positions: Tensor  # [tokens, 3]
    cells: Tensor  # [tokens], of all features; -1 for text
    learned: Tensor  # [tokens]
    parts: list[Rows]  # the trunks first
    pictures: list[Pictures]
    labels: Tensor  # [features, kinds of labels]
    part_of_token: Tensor  # [tokens]
    skill_of_part: Integers


class LoadedShard:
    """The arrays of one file, with where the pieces of each item begin in them."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self._arrays = {name: file[name] for name in file.files}
        self._grids: Integers = self._arrays["grids"]
        num_cells = self._grids.prod(axis=1)
        self._parts = _begins(self._arrays["num_parts"])
        self._pictures = _begins(self._arrays["num_pictures"])
        self._tokens = _begins(self._arrays["lengths"])
        self._cells = _begins(num_cells)
        self._pixels = _begins(num_cells * TOKEN_SIDE**2 * 3)

    def __len__(self) -> int:
        return len(self._arrays["num_parts"])

    def batches(self, num_items: int, generator: np.random.Generator) -> Iterator[Batch]:
        """Gives each item once, in a random order."""
        order = generator.permutation(len(self))
        order = order[np.argsort([self._likeness(item) for item in order], kind="stable")]
        groups = [order[begin : begin + num_items] for begin in range(0, len(order), num_items)]
        for number in generator.permutation(len(groups)):
            yield self.batch(groups[number])

    def _likeness(self, item: int) -> int:
        """Sorts by the number of pictures, then by the size of the first."""
        number = int(self._arrays["num_pictures"][item])
        rows, columns = self._grids[self._pictures[item]] if number else (0, 0)
        return number * 10**4 + int(rows) * 10**2 + int(columns)

    def batch(self, items: Integers) -> Batch:
        pictures, cells_in_order = self._pictures_of(items)
        feature_of_cell = np.full(self._cells[-1], -1)
        feature_of_cell[cells_in_order] = np.arange(len(cells_in_order))
        groups = self._groups(items)
        parts = np.concatenate([parts for parts, _ in groups])
        owners = np.concatenate([owners for _, owners in groups])
        lengths = self._arrays["lengths"][parts]
        places = np.concatenate(
            [np.arange(self._tokens[part], self._tokens[part + 1]) for part in parts]
        )
        part_of_token = np.repeat(np.arange(len(parts)), lengths)
        cells = self._arrays["cells"][places].astype(np.int64)
        first_cells = self._cells[self._pictures[items]][owners][part_of_token]
        found = (
            feature_of_cell[np.where(cells >= 0, cells + first_cells, 0)]
            if len(cells_in_order)
            else cells
        )
        return Batch(
            token_ids=torch.from_numpy(self._arrays["token_ids"][places].astype(np.int64)),
            positions=torch.from_numpy(self._arrays["positions"][places].astype(np.int64)),
            cells=torch.from_numpy(np.where(cells >= 0, found, -1)),
            learned=torch.from_numpy(self._arrays["learned"][places]),
            parts=_padded([(len(parts), owners) for parts, owners in groups], lengths),
            pictures=pictures,
            labels=torch.from_numpy(self._arrays["labels"][cells_in_order].astype(np.int64)),
            part_of_token=torch.from_numpy(part_of_token),
            skill_of_part=self._arrays["skills"][parts].astype(np.int64),
        )

    def _pictures_of(self, items: Integers) -> tuple[list[Pictures], Integers]:
        """Returns the pictures by size, and the cells of the shard in the order of their features."""
        numbers = _ranges(self._pictures, items)
        sizes = sorted({(int(rows), int(columns)) for rows, columns in self._grids[numbers]})
        made, in_order = [], [np.zeros(0, np.int64)]
        for rows, columns in sizes:
            alike = [number for number in numbers if (self._grids[number] == (rows, columns)).all()]
            pixels = [
                self._arrays["pixels"][self._pixels[each] : self._pixels[each + 1]]
                for each in alike
            ]
            shape = (len(alike), rows * TOKEN_SIDE, columns * TOKEN_SIDE, 3)
            made.append(Pictures(torch.from_numpy(np.stack(pixels).reshape(shape))))
            in_order.append(_ranges(self._cells, np.array(alike)))
        return made, np.concatenate(in_order)

    def _groups(self, items: Integers) -> list[tuple[Integers, Integers]]:
        """Returns parts with the numbers of their items in the batch: the trunks, then the others by length."""
        trunks, ends = self._parts[items], self._parts[items + 1]
        others = np.concatenate(
            [np.arange(begin + 1, end) for begin, end in zip(trunks, ends, strict=True)]
        )
        owners = np.repeat(np.arange(len(items)), ends - trunks - 1)
        by_length = np.argsort(self._arrays["lengths"][others], kind="stable")
        cuts = [cut for cut in np.array_split(by_length, NUM_GROUPS) if len(cut)]
        return [(trunks, np.arange(len(items))), *((others[cut], owners[cut]) for cut in cuts)]


def _begins(lengths: Integers) -> Integers:
    """Returns where each of some pieces begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths)))


def _ranges(begins: Integers, numbers: Integers) -> Integers:
    pieces = [np.arange(begins[number], begins[number + 1]) for number in numbers]
    return np.concatenate([np.zeros(0, np.int64), *pieces])


def _padded(groups: Sequence[tuple[int, Integers]], lengths: Integers) -> list[Rows]:
    """Takes how many parts are in each group, and whose they are; the first are the trunks."""
    made, part, begins = [], 0, _begins(lengths)
    for number, (count, owners) in enumerate(groups):
        own = lengths[part : part + count]
        across = np.arange(own.max())[None]
        valid = across < own[:, None]
        index = np.where(valid, begins[part : part + count, None] + across, 0)
        made.append(
            Rows(
                torch.from_numpy(index),
                torch.from_numpy(valid),
                torch.from_numpy(owners) if number else None,
            )
        )
        part += count
    return made
