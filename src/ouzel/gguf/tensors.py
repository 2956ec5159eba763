"""Maps a GGUF file's tensors to the names and shapes of transformers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures import find_architecture
from ouzel.gguf.architectures.kind import (
    AS_STORED,
    Architecture,
    Change,
    Cut,
    Join,
    Prediction,
    Split,
)
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import MAX_TENSORS, Gguf, TensorLocation

_IN_LAYER = re.compile(r"blk\.(\d{1,9})\.(.+?)(?:\.(weight|bias|scale))?")
_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
MAX_EXPERTS = 2**12  # several times as many as in any published model
_IN_CONFIG = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}


@dataclass(frozen=True, slots=True)
class Piece:
    """Refers to rows of a tensor in the file, or to its columns."""

    location: TensorLocation
    is_transposed: bool = False


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Describes a tensor of transformers, made of one or several pieces in the file."""

    name: str  # name of the first piece in the file
    pieces: tuple[Piece, ...]  # ordered from top to bottom
    shape: tuple[int, ...]  # shape of all pieces together
    change: Change = AS_STORED
    shift: float = 0.0  # is added to the stored values
    # contains every second row, or every second element of a bias
    every_other: TensorLocation | None = None

    @classmethod
    def whole(cls, name: str, location: TensorLocation) -> "StoredTensor":
        return cls(name, (Piece(location),), location.shape)

    @property
    def location(self) -> TensorLocation:
        return self.pieces[0].location

    @property
    def block_types(self) -> set[str]:
        return {piece.location.block_type.name for piece in self.pieces}


def name_gguf_tensors(gguf: Gguf) -> dict[str, StoredTensor]:
    """Returns the tensors by their names in transformers; an unknown tensor keeps its GGUF name.

    A layer that predicts further tokens is left out if its architecture does not name it, and all
    such layers after the first.
    """
    naming = _Naming(gguf)
    found: dict[str, StoredTensor] = {}
    for name, location in gguf.tensors.items():
        if name not in _IN_CONFIG:
            found |= dict(naming.named(StoredTensor.whole(name, location)))
        if len(found) > MAX_TENSORS:
            raise ModelLoadError(
                f"{gguf.metadata.source}: it must have <= {MAX_TENSORS} matrices, "
                "including matrices of experts"
            )
    return found


class _Naming:
    def __init__(self, gguf: Gguf) -> None:
        facts = self._facts = Facts(gguf)
        self._gguf = gguf
        self._architecture: Architecture = find_architecture(facts.architecture, facts.source)
        self._num_layers = facts.num_layers if facts.has("nextn_predict_layers") else None
        self._outer = _OUTER | dict(self._architecture.outer)
        joins = self._architecture.joins
        self._uppers = {join.below: upper for upper, join in joins.items()}

    @cached_property
    def _changes(self) -> Mapping[str, Change]:
        return self._architecture.changes(self._facts)

    @cached_property
    def _splits(self) -> Mapping[str, Split]:
        return self._architecture.splits(self._facts)

    @cached_property
    def _cuts(self) -> Mapping[str, Cut]:
        return self._architecture.cuts(self._facts)

    def named(self, stored: StoredTensor) -> Iterator[tuple[str, StoredTensor]]:
        parts = _IN_LAYER.fullmatch(stored.name)
        if parts is None:
            stem, _, kind = stored.name.rpartition(".")
            if stack := self._architecture.stacks.get(stem):
                _check_experts(stored, kind)
                yield from _each_expert(stored, f"{stack}.", kind)
                return
            yield (
                f"{self._outer[stem]}.{kind}" if stem in self._outer else stored.name,
                self._shifted(stored, stem),
            )
        elif self._num_layers is None or int(parts[1]) < self._num_layers:
            prefix = f"{self._architecture.prefix}{parts[1]}."
            yield from self._named_in_layer(stored, prefix, parts[2], parts[3] or "")
        elif self._architecture.prediction is not None and int(parts[1]) == self._num_layers:
            yield from self._named_in_prediction(stored, self._architecture.prediction, parts)

    def _named_in_prediction(
        self, stored: StoredTensor, prediction: Prediction, parts: re.Match[str]
    ) -> Iterator[tuple[str, StoredTensor]]:
        prefix, part, kind = f"model.layers.{parts[1]}.", parts[2], parts[3] or ""
        if part not in prediction.parts:
            yield from self._named_in_layer(stored, prediction.layer or prefix, part, kind)
            return
        name = prediction.parts[part]
        yield f"{'' if prediction.layer else prefix}{name}.{kind}", self._shifted(stored, part)

    def _named_in_layer(
        self, stored: StoredTensor, prefix: str, part: str, kind: str
    ) -> Iterator[tuple[str, StoredTensor]]:
        architecture, experts = self._architecture, self._architecture.experts
        if part in architecture.in_config:
            return
        if part in self._splits:
            yield from _split(stored, prefix, self._splits[part])
        elif part in self._cuts:
            yield from _cut(stored, prefix, kind, self._cuts[part])
        elif part in architecture.joins and kind == "weight":
            join = architecture.joins[part]
            yield f"{prefix}{join.name}.{kind}", self._joined(stored, part, join)
        elif kind == "weight" and self._is_joined(stored, part):
            return
        elif name := architecture.bare.get(f"{part}.{kind}") or architecture.bare.get(part):
            yield prefix + name, self._changed(stored, part)
        elif experts is not None and (name := experts.name(part)):
            _check_experts(stored, kind)
            if experts.are_alternating:
                yield from _alternating(stored, prefix + experts.prefix, (part, kind), self._gguf)
            else:
                yield from _each_expert(stored, prefix + experts.prefix, f"{name}.{kind}")
        elif part in architecture.layer:
            yield (
                f"{prefix}{architecture.layer[part]}.{kind}",
                self._shifted(self._changed(stored, part), part),
            )
        else:
            yield stored.name, stored

    def _is_joined(self, stored: StoredTensor, part: str) -> bool:
        """Tells whether the tensor is the lower part of another tensor in the file."""
        upper = self._uppers.get(part)
        return upper is not None and stored.name.replace(part, upper) in self._gguf.tensors

    def _changed(self, stored: StoredTensor, part: str) -> StoredTensor:
        change = self._changes.get(part)
        if change is None:
            return stored
        shape = (prod(stored.shape),) if change.is_flat else stored.shape
        return replace(stored, change=change, shape=shape)

    def _shifted(self, stored: StoredTensor, part: str) -> StoredTensor:
        unshifted = self._architecture.unshifted_norms
        if unshifted is None or part in unshifted or not stored.name.endswith("norm.weight"):
            return stored
        return replace(stored, shift=-1.0)

    def _joined(self, stored: StoredTensor, part: str, join: Join) -> StoredTensor:
        """Joins two parts: of each expert or head, the rows of the upper part and then of the lower
        one.
        """
        upper = stored.location
        lower = self._gguf.tensors.get(stored.name.replace(part, join.below))
        shape = (*upper.shape[:-2], *upper.shape[:-3:-1]) if join.is_transposed else upper.shape
        if lower is None or len(shape) not in (2, 3) or _but_rows(lower.shape) != _but_rows(shape):
            raise ModelLoadError(
                f"{upper.path}: {stored.name} must have a {join.below} of as many columns, "
                "and as many experts or heads"
            )
        if len(shape) == 3:
            _check_experts(stored, "weight")
        pieces: list[Piece] = []
        for one, other in zip(_matrices(upper), _matrices(lower), strict=True):
            pieces += [Piece(one, join.is_transposed), Piece(other)]
        joined = (*shape[:-2], shape[-2] + lower.shape[-2], shape[-1])
        if join.is_flat:
            joined = (prod(joined[:-1]), joined[-1])
        return replace(stored, pieces=tuple(pieces), shape=joined)


def _but_rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1])


def _check_experts(stored: StoredTensor, kind: str) -> None:
    """Raises ModelLoadError unless the tensor has a matrix, or vector, for each of several
    experts.
    """
    shape, num_dimensions = stored.location.shape, 3 if kind == "weight" else 2
    if len(shape) != num_dimensions or shape[0] > MAX_EXPERTS:
        raise ModelLoadError(
            f"{stored.location.path}: tensor {stored.name} must have {num_dimensions} dimensions, "
            f"the first of <= {MAX_EXPERTS} experts, found {list(shape)}"
        )


def _split(stored: StoredTensor, prefix: str, split: Split) -> Iterator[tuple[str, StoredTensor]]:
    location, size = stored.location, split.size
    if len(location.shape) != 2 or location.shape[0] % (2 * size):
        raise ModelLoadError(
            f"{location.path}: tensor {stored.name} must have a multiple of {2 * size} rows, "
            f"found {list(location.shape)}"
        )
    num_rows, columns = location.shape
    for name, begin in {split.first: 0, split.second: size}.items():
        offsets = (
            location.offset + row * location.row_bytes for row in range(begin, num_rows, 2 * size)
        )
        pieces = tuple(
            Piece(replace(location, shape=(size, columns), offset=offset)) for offset in offsets
        )
        yield (
            f"{prefix}{name}.weight",
            replace(stored, pieces=pieces, shape=(num_rows // 2, columns)),
        )


def _cut(
    stored: StoredTensor, prefix: str, kind: str, cut: Cut
) -> Iterator[tuple[str, StoredTensor]]:
    parts = cut_rows(stored, tuple(cut.rows.values()))
    for name, part in zip(cut.rows, parts, strict=True):
        yield f"{prefix}{name}.{kind}", part


def cut_rows(stored: StoredTensor, sizes: Sequence[int]) -> Iterator[StoredTensor]:
    """Cuts a matrix into parts of so many rows, or a vector into parts of so many elements.

    Raises ModelLoadError unless these are all its rows.
    """
    location, num_rows = stored.location, sum(sizes)
    if len(location.shape) not in (1, 2) or location.shape[0] != num_rows:
        raise ModelLoadError(
            f"{location.path}: tensor {stored.name} must have {num_rows} rows, "
            f"found {list(location.shape)}"
        )
    # a vector is one row of the file
    num_bytes = location.row_bytes * (num_rows if len(location.shape) == 2 else 1)
    offset = location.offset
    for rows in sizes:
        own = replace(location, shape=(rows, *location.shape[1:]), offset=offset)
        yield StoredTensor.whole(stored.name, own)
        offset += num_bytes * rows // num_rows


def _matrices(location: TensorLocation) -> Iterator[TensorLocation]:
    """Yields the matrices of a tensor [experts, ., .], or the single matrix [., .]."""
    if len(location.shape) == 2:
        yield location
    else:
        yield from _each(location)


def _each(location: TensorLocation) -> Iterator[TensorLocation]:
    for number in range(location.shape[0]):
        offset = location.offset + number * prod(location.shape[1:-1]) * location.row_bytes
        yield replace(location, shape=location.shape[1:], offset=offset)


def _each_expert(
    stored: StoredTensor, prefix: str, name: str
) -> Iterator[tuple[str, StoredTensor]]:
    for expert, own in enumerate(_each(stored.location)):
        yield f"{prefix}{expert}.{name}", StoredTensor.whole(stored.name, own)


def _alternating(
    stored: StoredTensor, prefix: str, part: tuple[str, str], gguf: Gguf
) -> Iterator[tuple[str, StoredTensor]]:
    name, kind = part
    end, axis = ("_bias", -1) if kind == "bias" else ("", -2)
    if name == "ffn_down_exps":
        yield f"{prefix}down_proj{end}", stored
    elif name == "ffn_gate_exps":
        other = gguf.tensors.get(stored.name.replace("ffn_gate_exps", "ffn_up_exps"))
        own = stored.location
        if other is None or (other.shape, other.block_type) != (own.shape, own.block_type):
            raise ModelLoadError(
                f"{own.path}: {stored.name} must have an ffn_up_exps of its shape and type"
            )
        shape = list(stored.shape)
        shape[axis] *= 2
        yield f"{prefix}gate_up_proj{end}", replace(stored, every_other=other, shape=tuple(shape))
