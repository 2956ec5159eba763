"""Tells users what became of the quantised matrices of a checkpoint, for the log and for `ouzel inspect`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import StoredForm
from ouzel.config.weights import BITS_OF_INTEGERS, WeightPlan


@dataclass(frozen=True, slots=True)
class HeldMatrix:
    """A matrix in memory, with the form that the checkpoint stores it in (None: plain numbers)."""

    form: StoredForm | None
    is_rounded: bool  # to a named width; False where the matrix is treated as under auto
    encoding: Encoding
    shape: tuple[int, ...]

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Self:
        """Takes a matrix's entry in the index of a weight cache."""
        form = StoredForm(**entry["form"]) if entry["form"] else None
        return cls(form, entry["is_rounded"], Encoding(**entry["encoding"]), tuple(entry["shape"]))

    def as_entry(self) -> dict[str, Any]:
        return {
            "form": None if self.form is None else asdict(self.form),
            "is_rounded": self.is_rounded,
            "encoding": asdict(self.encoding),
            "shape": self.shape,
        }

    @property
    def is_kept(self) -> bool:
        return self.form is not None and not self.is_rounded


def held_matrices(index: Mapping[str, Any]) -> list[HeldMatrix]:
    return [HeldMatrix.read(entry) for entry in index.values() if "encoding" in entry]


def report_widths(plan: WeightPlan, matrices: Iterable[HeldMatrix]) -> str:
    """Returns an empty text where the checkpoint stores no matrix quantised."""
    matrices = list(matrices)
    counts = Counter((matrix.form, matrix.is_rounded, matrix.encoding) for matrix in matrices if matrix.form)
    if not counts:
        return ""
    parts = []
    for (form, is_rounded, encoding), count in counts.most_common():
        assert form is not None, "plain matrices are not counted"
        verb = ("decoded to" if encoding.scales is None else "rounded to") if is_rounded else "kept as"
        parts.append(f"{count} of {form.name} ({form.bits} bits) {verb} {encoding.description}")
    num_bits = sum(matrix.encoding.bits_per_value(matrix.shape[-1]) * math.prod(matrix.shape) for matrix in matrices)
    num_values = sum(math.prod(matrix.shape) for matrix in matrices)
    parts.append(f"{num_bits / num_values:.1f} bits a weight in memory")
    widths = {plan.layers, plan.experts, plan.embedding, plan.head}
    if widths & BITS_OF_INTEGERS.keys() and not plan.recompress and any(matrix.is_kept for matrix in matrices):
        parts.append("--recompress rounds the kept matrices to the named width")
    return "quantised matrices: " + "; ".join(parts)
