"""A GGUF file's tensors by the names that transformers gives them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ouzel.gguf.architectures import Architecture, architecture_of
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf, TensorLocation

_IN_LAYER = re.compile(r"blk\.(\d{1,9})\.(.+)\.(weight|bias)")
_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_IN_CONFIG = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """What transformers has under one name."""

    name: str  # in the file
    location: TensorLocation
    head_dim: int = 0  # of each so many rows those of even numbers come first, then the others; 0: as they are stored
    shift: float = 0.0  # is added to what is stored

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
            stored = StoredTensor(name, location)
            found |= dict(_named(stored, architecture, facts))
    return found


def _named(stored: StoredTensor, architecture: Architecture, facts: Facts) -> Iterator[tuple[str, StoredTensor]]:
    parts = _IN_LAYER.fullmatch(stored.name)
    if parts is None:
        stem, _, kind = stored.name.rpartition(".")
        outer = _OUTER | dict(architecture.outer)
        known = f"{outer[stem]}.{kind}" if stem in outer else stored.name
        yield known, _shifted(stored, architecture)
        return
    layer, part, kind = parts.groups()
    prefix = f"model.layers.{layer}."
    if part not in architecture.layer:
        yield stored.name, stored
    elif architecture.permutes_heads and part in ("attn_q", "attn_k"):
        head_dim = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
        head_dim = facts.integer("attention.key_length", head_dim)
        yield f"{prefix}{architecture.layer[part]}.{kind}", replace(stored, head_dim=head_dim)
    else:
        yield f"{prefix}{architecture.layer[part]}.{kind}", _shifted(stored, architecture)


def _shifted(stored: StoredTensor, architecture: Architecture) -> StoredTensor:
    is_norm = stored.name.endswith("norm.weight")
    return replace(stored, shift=-1.0) if architecture.shifts_norms and is_norm else stored
