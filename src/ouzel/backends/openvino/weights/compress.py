"""A checkpoint's tensors are compressed as a graph asks for them, a few rows at a time."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import AUTO_WIDTH, Encoding, Parts, encoder, encoding_of
from ouzel.backends.openvino.weights.source import Array, Matrix, PartWriter, Tensor, Tensors, Wanted
from ouzel.config.weights import WidthOption


class CompressedWeights:
    """Implements `Weights`."""

    def __init__(self, tensors: Tensors, writer: PartWriter) -> None:
        self._tensors = tensors
        self._writer = writer
        self.index: dict[str, dict[str, Any]] = {}  # Any: JSON
        self.used: set[str] = set()  # names of tensors

    def matrix(self, wanted: Wanted, width: WidthOption) -> Matrix:
        self.used.update(tensor.name for tensor in wanted.tensors)
        encoding, pieces = self._pieces(wanted, width)
        small: dict[str, list[Array]] = {}  # scales and zeros: few enough to wait until the values are written

        def values() -> Iterator[Array]:
            for parts in in_order(pieces, wanted.row_order, wanted.row_unit):
                yield parts.pop("values")
                for name, part in parts.items():
                    small.setdefault(name, []).append(part)

        parts: Parts = {}
        entries = {}
        parts["values"], entries["values"] = self._writer.append(values())
        for name, chunks in small.items():
            parts[name], entries[name] = self._writer.append(chunks)
        self.index[wanted.key] = {"encoding": asdict(encoding), "shape": wanted.shape, "parts": entries}
        return Matrix(encoding, wanted.shape, parts)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Takes any shape: what is no matrix is small."""
        self.used.add(name)
        rows = self._tensors.rows(Tensor(name, shape))
        values, entry = self._writer.append(chunk.reshape(-1) for chunk in rows)
        self.index[name] = {"shape": shape, "parts": {"values": entry}}
        return values.astype(np.float32, copy=False).reshape(shape)

    def _pieces(self, wanted: Wanted, width: WidthOption) -> tuple[Encoding, Iterator[Parts]]:
        """Returns what the rows will be encoded as, and them."""
        if (stored := kept_encoding(self._tensors, wanted, width)) is not None:
            return stored, chain.from_iterable(map(self._tensors.parts, wanted.tensors))
        width = AUTO_WIDTH if width == "auto" else width
        encode = encoder(width)
        rows = chain.from_iterable(map(self._tensors.rows, wanted.tensors))
        return encoding_of(width, wanted.shape[-1]), (encode(chunk) for chunk in rows)


def kept_encoding(tensors: Tensors, wanted: Wanted, width: WidthOption) -> Encoding | None:
    """Returns what all of the wanted tensors are stored in; None where they have to be encoded.

    Raises ModelLoadError where one is missing or has another shape.
    """
    stored = {tensors.stored_encoding(tensor) for tensor in wanted.tensors}
    return stored.pop() if width == "auto" and len(stored) == 1 else None


def in_order(pieces: Iterator[Parts], order: tuple[int, ...] | None, unit: int = 0) -> Iterator[Parts]:
    """Gives the rows of each unit in that order, which may leave some out; as they come where it is None."""
    if order is None:
        yield from pieces
        return
    unit = unit or len(order)
    held: list[Parts] = []
    for piece in pieces:
        held.append(piece)
        if sum(len(each["values"]) for each in held) >= unit:
            whole = {name: np.concatenate([each[name] for each in held]) for name in piece}
            num_units = len(whole["values"]) // unit
            rows = (np.arange(num_units)[:, None] * unit + np.array(order)).reshape(-1)
            yield {name: part[rows] for name, part in whole.items()}
            rest = num_units * unit
            held = [{name: part[rest:] for name, part in whole.items()}]
    assert not held or not len(held[0]["values"]), "rows come in whole units"
