"""A GGUF file's tensors by the names that transformers gives them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures import Architecture, architecture_of
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import MAX_TENSORS, Gguf, TensorLocation

_IN_LAYER = re.compile(r"blk\.(\d{1,9})\.(.+)\.(weight|bias)")
_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
MAX_EXPERTS = 2**12  # several times what any published model has
_IN_CONFIG = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """What transformers has under one name."""

    name: str  # in the file
    location: TensorLocation
    head_dim: int = 0  # of each so many rows those of even numbers come first, then the others; 0: as they are stored
    shift: float = 0.0  # is added to what is stored
    every_other: TensorLocation | None = None  # has every second row, or of a bias every second element

    @property
    def row_order(self) -> tuple[int, ...] | None:
        """Brings a head's rows, stored as pairs that are turned together, into two halves of those pairs."""
        return (*range(0, self.head_dim, 2), *range(1, self.head_dim, 2)) if self.head_dim else None


def tensors_of(gguf: Gguf) -> dict[str, StoredTensor]:
    """Returns them by transformers' names; one that no such name is known for keeps its own."""
    facts = Facts(gguf)
    architecture = architecture_of(facts.architecture, facts.source)
    found: dict[str, StoredTensor] = {}
    for name, location in gguf.tensors.items():
        if name not in _IN_CONFIG:
            found |= dict(_named(StoredTensor(name, location), architecture, gguf))
        if len(found) > MAX_TENSORS:
            raise ModelLoadError(f"{facts.source}: it must have <= {MAX_TENSORS} matrices, those of experts included")
    return found


def _named(stored: StoredTensor, architecture: Architecture, gguf: Gguf) -> Iterator[tuple[str, StoredTensor]]:
    parts = _IN_LAYER.fullmatch(stored.name)
    if parts is None:
        stem, _, kind = stored.name.rpartition(".")
        outer = _OUTER | dict(architecture.outer)
        yield f"{outer[stem]}.{kind}" if stem in outer else stored.name, _shifted(stored, architecture)
        return
    layer, part, kind = parts.groups()
    prefix = f"model.layers.{layer}."
    experts = architecture.experts
    if experts is not None and (name := experts.name(part)):
        _check_experts(stored, kind)
        if experts.are_alternating:
            yield from _alternating(stored, prefix + experts.prefix, (part, kind), gguf)
        else:
            yield from _each_expert(stored, prefix + experts.prefix, f"{name}.{kind}")
    elif part in architecture.bare:
        yield prefix + architecture.bare[part], stored
    elif part not in architecture.layer:
        yield stored.name, stored
    elif architecture.permutes_heads and part in ("attn_q", "attn_k"):
        yield f"{prefix}{architecture.layer[part]}.{kind}", replace(stored, head_dim=head_dim(Facts(gguf)))
    else:
        yield f"{prefix}{architecture.layer[part]}.{kind}", _shifted(stored, architecture)


def _check_experts(stored: StoredTensor, kind: str) -> None:
    """Raises ModelLoadError where it is no matrix, or vector, of each of several experts."""
    shape, num_dimensions = stored.location.shape, 3 if kind == "weight" else 2
    if len(shape) != num_dimensions or shape[0] > MAX_EXPERTS:
        raise ModelLoadError(
            f"{stored.location.path}: tensor {stored.name} must have {num_dimensions} dimensions, "
            f"the first of <= {MAX_EXPERTS} experts, found {list(shape)}"
        )


def head_dim(facts: Facts) -> int:
    usual = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    return facts.integer("attention.key_length", usual)


def _each_expert(stored: StoredTensor, prefix: str, name: str) -> Iterator[tuple[str, StoredTensor]]:
    location = stored.location
    for expert in range(location.shape[0]):
        offset = location.offset + expert * prod(location.shape[1:-1]) * location.row_bytes
        own = replace(location, shape=location.shape[1:], offset=offset)
        yield f"{prefix}{expert}.{name}", replace(stored, location=own)


def _alternating(
    stored: StoredTensor, prefix: str, part: tuple[str, str], gguf: Gguf
) -> Iterator[tuple[str, StoredTensor]]:
    name, kind = part
    end = "_bias" if kind == "bias" else ""
    if name == "ffn_down_exps":
        yield f"{prefix}down_proj{end}", stored
    elif name == "ffn_gate_exps":
        other = gguf.tensors.get(stored.name.replace("ffn_gate_exps", "ffn_up_exps"))
        if other is None or (other.shape, other.block_type) != (stored.location.shape, stored.location.block_type):
            raise ModelLoadError(
                f"{stored.location.path}: {stored.name} must have an ffn_up_exps of its shape and type"
            )
        yield f"{prefix}gate_up_proj{end}", replace(stored, every_other=other)


def _shifted(stored: StoredTensor, architecture: Architecture) -> StoredTensor:
    is_norm = stored.name.endswith("norm.weight")
    return replace(stored, shift=-1.0) if architecture.shifts_norms and is_norm else stored
