"""Compresses the tensors of a checkpoint as a graph asks for them, a few rows at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.cells import (
    BLOCK_ROWS,
    cut_into_blocks,
    fits_cells,
    pack_encoding,
    pack_rows,
)
from ouzel.backends.openvino.weights.encodings import (
    AUTO_WIDTH,
    FLOATS_OF_FOUR_BITS,
    INT8_IN_GROUPS,
    INT8_OF_MXFP4,
    MXFP4,
    Encoding,
    Parts,
    choose_encoding,
    encoder,
    int8_of_mxfp4,
)
from ouzel.backends.openvino.weights.finite import (
    are_finite,
    make_not_finite_error,
    silence_warnings,
)
from ouzel.backends.openvino.weights.parallel import map_in_threads
from ouzel.backends.openvino.weights.source import (
    Array,
    Matrix,
    MatrixSpec,
    PartWriter,
    StoredForm,
    Tensor,
    Tensors,
)
from ouzel.backends.openvino.weights.width_report import Fate, HeldMatrix
from ouzel.config.weights import BITS_OF_INTEGERS, WidthOption
from ouzel.errors import ModelLoadError

Encode = Callable[[NDArray[np.float32]], Parts]

ENCODED_AT_ONCE = 2**19  # weights in one piece; the smallest matrices have a few pieces


@dataclass(frozen=True, slots=True)
class Origin:
    """The tensors of a checkpoint that a matrix is made from, and its encoding."""

    tensors: tuple[Tensor, ...]
    # the encoding of all tensors, if it is kept; None: the rows are compressed
    stored: Encoding | None
    encoding: Encoding  # the encoding of the matrix
    form: StoredForm | None  # the form of all tensors; None if one of them has plain numbers
    width: WidthOption  # the width in the user's plan
    is_rounded: bool  # rounded to `width`; False: treated as under auto

    @property
    def may_be_calibrated(self) -> bool:
        """Tells whether the matrix is rounded from plain numbers, or by the user's wish from a
        stored form.
        """
        return self.stored is None and (self.form is None or self.is_rounded)

    def held(self, shape: tuple[int, ...]) -> HeldMatrix:
        fate: Fate = (
            "kept" if self.stored is not None else "rounded" if self.is_rounded else "encoded"
        )
        return HeldMatrix(self.form, self.width, fate, self.encoding, shape)


class MatrixEncoders(Protocol):
    """Chooses better encodings for some matrices, by a calibration."""

    def encoder(self, spec: MatrixSpec) -> tuple[Encoding, Encode] | None:
        """Returns the encoding and its function, None for a matrix that its width alone decides."""
        ...


class CompressedWeights:
    """Compresses tensors and writes the parts; implements `Weights`."""

    def __init__(
        self,
        tensors: Tensors,
        writer: PartWriter,
        encoders: MatrixEncoders | None = None,
        *,
        recompress: bool = False,
        packs: bool = False,
    ) -> None:
        """With `packs` matrices are packed for the kernels where the graph can take them."""
        self._tensors = tensors
        self._recompress = recompress
        self._packs = packs
        self._writer = writer
        self._encoders = encoders
        self.index: dict[str, dict[str, Any]] = {}  # Any: JSON
        self.num_kept = 0  # matrices with exactly the stored values
        self.used: set[str] = set()  # names of tensors

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        origin = find_origin(
            spec, width, self._tensors, recompress=self._recompress, packs=self._packs
        )
        self.used.update(tensor.name for tensor in origin.tensors)
        self.num_kept += origin.stored is not None  # int8 represents mxfp4 exactly
        found = None
        if self._encoders is not None and origin.may_be_calibrated:
            found = self._encoders.encoder(spec)
        if found is None:
            pieces = self._pieces(origin)
        else:
            encoding = packed_encoding(spec, found[0]) if self._packs else found[0]
            origin = replace(origin, encoding=encoding)
            pieces = map_in_threads(silence_warnings(found[1]), self._rows(origin))
        pieces = self._check_pieces(reorder_rows(pieces, spec.row_order, spec.row_unit), origin)
        if origin.encoding.is_packed:
            blocks_at_once = max(1, ENCODED_AT_ONCE // (BLOCK_ROWS * spec.shape[-1]))
            pack = partial(pack_rows, replace(origin.encoding, is_packed=False))
            pieces = map_in_threads(pack, cut_into_blocks(pieces, blocks_at_once))
        # Scales and zeros are small; they wait until the values are written.
        small: dict[str, list[Array]] = {}

        def values() -> Iterator[Array]:
            for parts in pieces:
                yield parts.pop("values")
                for name, part in parts.items():
                    small.setdefault(name, []).append(part)

        parts: Parts = {}
        entries = {}
        parts["values"], entries["values"] = self._writer.append(values())
        for name, chunks in small.items():
            parts[name], entries[name] = self._writer.append(chunks)
        self.index[spec.key] = {**origin.held(spec.shape).as_entry(), "parts": entries}
        return Matrix(origin.encoding, spec.shape, parts)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns an array of any shape as float32; everything but matrices is small."""
        self.used.add(name)
        rows = self._tensors.rows(Tensor(name, shape))
        values, entry = self._writer.append(chunk.reshape(-1) for chunk in rows)
        if not np.isfinite(values).all():
            raise make_not_finite_error(self._tensors, [Tensor(name, shape)])
        self.index[name] = {"shape": shape, "parts": {"values": entry}}
        return values.astype(np.float32, copy=False).reshape(shape)

    def has(self, name: str) -> bool:
        return name in self._tensors.names()

    def _pieces(self, origin: Origin) -> Iterator[Parts]:
        if origin.stored is None:
            return map_in_threads(
                silence_warnings(encoder(origin.encoding)), cut(self._rows(origin))
            )
        parts = chain.from_iterable(map(self._tensors.parts, origin.tensors))
        is_unpacked = origin.encoding == INT8_OF_MXFP4 and origin.stored == MXFP4
        return map_in_threads(int8_of_mxfp4, parts) if is_unpacked else parts

    def _check_pieces(self, pieces: Iterator[Parts], origin: Origin) -> Iterator[Parts]:
        """Yields the pieces. Raises ModelLoadError for a piece that is not finite."""
        for parts in pieces:
            if not are_finite(origin.encoding, parts):
                raise make_not_finite_error(self._tensors, origin.tensors)
            yield parts

    def _rows(self, origin: Origin) -> Iterator[NDArray[np.float32]]:
        return chain.from_iterable(map(self._tensors.rows, origin.tensors))


def cut(chunks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """Cuts chunks into smaller pieces, so that all cores share a matrix that is one chunk."""
    for chunk in chunks:
        step = max(1, ENCODED_AT_ONCE // chunk.shape[-1])
        for start in range(0, len(chunk), step):
            yield chunk[start : start + step]


def find_origin(
    spec: MatrixSpec,
    width: WidthOption,
    tensors: Tensors,
    *,
    recompress: bool = False,
    packs: bool = False,
) -> Origin:
    """Decides the tensors and the encoding of a matrix.

    A matrix that is stored in no more bits than a named integer width is treated as under auto:
    rounding it again would lose quality for nothing. With `recompress` it is rounded all the same.
    With `packs` the matrix is packed where the graph and the kernels can take it.

    Raises ModelLoadError if a tensor is missing, has another shape, or cannot have that width.
    """
    sources = spec.tensors
    if spec.instead is not None and spec.instead.name in tensors.names():
        sources = (spec.instead,)
    form = joint_form([tensors.stored_form(tensor) for tensor in sources])
    option = width
    width = width if recompress else resolve_width(form, width)
    encodings = {tensors.stored_encoding(tensor) for tensor in sources}
    stored = common_encoding(encodings, width, spec.shape[-1])
    is_rounded = width != "auto" and stored is None
    kept = None if stored is None else kept_encoding(spec, stored, packs=packs)
    if kept is None:
        encoding = compressed_encoding(spec, width, encodings, packs=packs)
        encoding = packed_encoding(spec, encoding) if packs else encoding
        return Origin(sources, None, encoding, form, option, is_rounded)
    return Origin(sources, stored, kept, form, option, is_rounded)


def kept_encoding(spec: MatrixSpec, stored: Encoding, *, packs: bool) -> Encoding | None:
    """Returns the encoding that holds the stored values exactly; None if they are compressed."""
    if packs and (packed := packed_encoding(spec, stored)).is_packed:
        return packed
    if spec.is_integer and stored.values in FLOATS_OF_FOUR_BITS:
        return INT8_OF_MXFP4 if stored == MXFP4 else None
    return None if stored.is_slow_integer else stored


def packed_encoding(spec: MatrixSpec, encoding: Encoding) -> Encoding:
    """Returns the packed form of the encoding if the graph and the kernels can take it."""
    fits = spec.may_be_packed and fits_cells(encoding, spec.shape[-1])
    return pack_encoding(encoding) if fits else encoding


def common_encoding(
    stored: set[Encoding | None], width: WidthOption, columns: int
) -> Encoding | None:
    """Returns the single encoding of all tensors, if the width allows it; else None."""
    if len(stored) > 1:
        return None
    [encoding] = stored
    return encoding if width == "auto" or encoding == choose_encoding(width, columns) else None


def resolve_width(form: StoredForm | None, width: WidthOption) -> WidthOption:
    """Returns `auto` in place of an integer width that is no narrower than the stored form."""
    is_narrow = form is not None and form.bits <= BITS_OF_INTEGERS.get(width, 0)
    return "auto" if is_narrow else width


def joint_form(forms: Sequence[StoredForm | None]) -> StoredForm | None:
    """Returns the form of a matrix of several tensors, None if one of them has plain numbers."""
    known = [form for form in forms if form is not None]
    if len(known) < len(forms):
        return None
    return StoredForm(
        " and ".join(sorted({form.name for form in known})), max(form.bits for form in known)
    )


def compressed_encoding(
    spec: MatrixSpec, width: WidthOption, stored: set[Encoding | None], *, packs: bool
) -> Encoding:
    """Returns the encoding of a matrix that is compressed.

    In int8 the kernels take a scale for each group, because that costs them nothing; so do the
    encoders, whose vectors then change less.

    Raises ModelLoadError if int4 is to encode an odd number of columns.
    """
    columns = spec.shape[-1]
    if width == "int4" and columns % 2:
        raise ModelLoadError(
            f"tensor {spec.key}: --weights int4 requires an even number of columns, found {columns}"
        )
    are_slow = all(each is not None and each.is_slow_integer for each in stored)
    has_groups = spec.has_groups or (packs and spec.may_be_packed)
    has_groups |= width == "auto" and are_slow
    width = AUTO_WIDTH if width == "auto" else width
    fits = columns % INT8_IN_GROUPS.group_size == 0
    return (
        INT8_IN_GROUPS
        if width == "int8" and has_groups and fits
        else choose_encoding(width, columns)
    )


def reorder_rows(
    pieces: Iterator[Parts], order: tuple[int, ...] | None, unit: int = 0
) -> Iterator[Parts]:
    """Yields the rows of each unit in the given order, which may leave rows out.

    `unit` is the number of rows in a unit, 0 for the length of the order. Without an order the
    pieces pass unchanged.
    """
    if order is None:
        yield from pieces
        return
    unit = unit or len(order)
    waiting: list[Parts] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(each["values"]) for each in waiting) >= unit:
            whole = {name: np.concatenate([each[name] for each in waiting]) for name in piece}
            num_units = len(whole["values"]) // unit
            rows = (np.arange(num_units)[:, None] * unit + np.array(order)).reshape(-1)
            yield {name: part[rows] for name, part in whole.items()}
            rest = num_units * unit
            waiting = [{name: part[rest:] for name, part in whole.items()}]
    assert not waiting or not len(waiting[0]["values"]), "rows come in whole units"
