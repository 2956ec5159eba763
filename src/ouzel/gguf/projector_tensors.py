"""Maps the tensors of an mmproj file to the names and shapes of transformers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf, TensorLocation
from ouzel.gguf.projectors import find_projector
from ouzel.gguf.projectors.kind import PATCHES, Projector, are_swapped
from ouzel.gguf.tensors import Piece, StoredTensor, cut_rows

_IN_LAYER = re.compile(r"v\.blk\.(\d{1,9})\.(.+)")
_DEEP = re.compile(r"v\.deepstack\.(\d{1,9})\.(norm|fc1|fc2)\.(weight|bias)")
_DEEP_NAMES = {"norm": "norm", "fc1": "linear_fc1", "fc2": "linear_fc2"}
_AUDIO = ("a.", "mm.a.")
_SWAPPED = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
_KINDS = ("weight", "bias")
_FUSED = "attn_qkv"
_PARTS = ("attn_q", "attn_k", "attn_v")
_SECOND_FRAME = f"{PATCHES}.weight.1"


def name_projector_tensors(gguf: Gguf) -> dict[str, StoredTensor]:
    """Returns the tensors by their names in transformers; it leaves out the audio encoder.

    Raises ModelLoadError for a tensor without a name there.
    """
    naming = _Naming(gguf)
    return dict(
        named
        for name, location in gguf.tensors.items()
        if not name.startswith(_AUDIO)
        for named in naming.named(StoredTensor.whole(name, location))
    )


class _Naming:
    def __init__(self, gguf: Gguf) -> None:
        self._gguf = gguf
        self._facts = Facts(gguf)
        self._projector: Projector = find_projector(self._facts)
        self._joins = {
            name: (own, names) for own, names in self._projector.joins.items() for name in names
        }
        self._changes = self._projector.changes(self._facts)
        self._are_swapped = are_swapped(self._facts)
        layers = {int(found[1]) for found in map(_DEEP.fullmatch, gguf.tensors) if found}
        self._deep_layers = sorted(layers)

    def named(self, stored: StoredTensor) -> Iterator[tuple[str, StoredTensor]]:
        projector, name = self._projector, stored.name
        if name in projector.left_out or name == _SECOND_FRAME:
            return
        if found := _DEEP.fullmatch(name):
            number = self._deep_layers.index(int(found[1]))
            kind = f"{_DEEP_NAMES[found[2]]}.{found[3]}"
            yield f"visual.deepstack_merger_list.{number}.{kind}", stored
        elif found := _IN_LAYER.fullmatch(name):
            yield from self._named_in_layer(stored, found[1], found[2])
        elif name in projector.bare:
            yield projector.bare[name], self._transposed(stored)
        elif name in self._joins:
            own, names = self._joins[name]
            if name == names[0]:
                yield own, self._joined(stored, names)
        else:
            stem, _, kind = name.rpartition(".")
            if stem not in projector.outer or kind not in _KINDS:
                raise self._unknown(stored)
            yield f"{projector.outer[stem]}.{kind}", self._changed(stored, stem)

    def _named_in_layer(
        self, stored: StoredTensor, number: str, rest: str
    ) -> Iterator[tuple[str, StoredTensor]]:
        projector, (part, _, kind) = self._projector, rest.rpartition(".")
        prefix = f"{projector.layer_prefix}{number}."
        if self._are_swapped:
            part = _SWAPPED.get(part, part)
        if part in _PARTS and part not in projector.layer and _FUSED in projector.layer:
            if part == _PARTS[0]:
                names = tuple(stored.name.replace(_PARTS[0], each) for each in _PARTS)
                yield f"{prefix}{projector.layer[_FUSED]}.{kind}", self._joined(stored, names)
        elif part == _FUSED and part not in projector.layer:
            yield from self._parted(stored, prefix, kind)
        elif rest in projector.bare:
            yield prefix + projector.bare[rest], stored
        elif part in projector.layer and kind in _KINDS:
            yield f"{prefix}{projector.layer[part]}.{kind}", self._changed(stored, part)
        else:
            raise self._unknown(stored)

    def _joined(self, stored: StoredTensor, names: Sequence[str]) -> StoredTensor:
        """Joins queries, keys and values, which are one matrix or vector in transformers.

        `stored` is the first of the tensors with these names.
        """
        locations = [self._gguf.tensors.get(name) for name in names]
        shape = stored.shape
        if any(each is None or each.shape != shape for each in locations):
            raise ModelLoadError(
                f"{self._facts.source}: {', '.join(names)} must be there and have one shape"
            )
        pieces = tuple(Piece(each) for each in locations if each is not None)
        return replace(stored, pieces=pieces, shape=(len(names) * shape[0], *shape[1:]))

    def _parted(
        self, stored: StoredTensor, prefix: str, kind: str
    ) -> Iterator[tuple[str, StoredTensor]]:
        """Parts one matrix into queries, keys and values."""
        rows, rest = divmod(stored.shape[0], len(_PARTS))
        if rest:
            raise ModelLoadError(
                f"{self._facts.source}: {stored.name} must have a multiple of 3 rows, "
                f"found {list(stored.shape)}"
            )
        for part, cut in zip(_PARTS, cut_rows(stored, (rows,) * len(_PARTS)), strict=True):
            yield f"{prefix}{self._projector.layer[part]}.{kind}", self._changed(cut, part)

    def _changed(self, stored: StoredTensor, part: str) -> StoredTensor:
        stored = replace(stored, shift=self._projector.shifts.get(part, 0.0))
        change = self._changes.get(part)
        if part == PATCHES and stored.name.endswith(".weight"):
            if change is not None:
                flat = (stored.shape[0], prod(stored.shape[1:]))
                piece = Piece(replace(stored.location, shape=flat))
                return replace(stored, pieces=(piece,), shape=flat, change=change)
            if _SECOND_FRAME in self._gguf.tensors:
                return self._join_frames(stored)
        if change is not None and part != PATCHES:
            return replace(stored, change=change)
        return stored

    def _join_frames(self, stored: StoredTensor) -> StoredTensor:
        """Joins the kernels of two frames, [size, 3, side, side], to [size, 3, 2, side, side]."""
        first, second = stored.location, self._gguf.tensors[_SECOND_FRAME]
        if len(first.shape) != 4 or (first.shape, first.block_type) != (
            second.shape,
            second.block_type,
        ):
            raise ModelLoadError(
                f"{self._facts.source}: {stored.name} and {_SECOND_FRAME} must have 4 dimensions, "
                f"and one shape and type, found {list(first.shape)} and {list(second.shape)}"
            )
        shape = (*first.shape[:2], 2, *first.shape[2:])
        return replace(
            stored, pieces=(Piece(_flat(first)),), every_other=_flat(second), shape=shape
        )

    def _transposed(self, stored: StoredTensor) -> StoredTensor:
        if stored.name not in self._projector.transposed:
            return stored
        return replace(
            stored, pieces=(Piece(stored.location, is_transposed=True),), shape=stored.shape[::-1]
        )

    def _unknown(self, stored: StoredTensor) -> ModelLoadError:
        return ModelLoadError(
            f"{self._facts.source}: tensor {stored.name} is not supported for this projector type"
        )


def _flat(location: TensorLocation) -> TensorLocation:
    """Returns a kernel [size, 3, side, side] as the rows [size * 3, side * side]."""
    shape = (prod(location.shape[:2]), prod(location.shape[2:]))
    return replace(location, shape=shape)
