"""Reports the widths of a checkpoint's quantised matrices, for the log and for `ouzel inspect`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import StoredForm
from ouzel.config.weights import BITS_OF_INTEGERS, WidthOption

Fate = Literal["kept", "encoded", "rounded"]


@dataclass(frozen=True, slots=True)
class HeldMatrix:
    """A matrix in memory, and the form that the checkpoint stores it in (None: plain
    numbers).

    The fate is `kept` if the stored values stay exactly, and `encoded` if auto takes another
    encoding for them. It is `rounded` if the named width changes them; a matrix that is decoded to
    bf16 or f32 counts as rounded.
    """

    form: StoredForm | None
    width: WidthOption  # the width in the user's plan
    fate: Fate
    encoding: Encoding
    shape: tuple[int, ...]

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Self:
        """Reads a matrix's entry in the index of a weight cache."""
        form = StoredForm(**entry["form"]) if entry["form"] else None
        return cls(
            form,
            entry["width"],
            entry["fate"],
            Encoding(**entry["encoding"]),
            tuple(entry["shape"]),
        )

    def as_entry(self) -> dict[str, Any]:
        return {
            "form": None if self.form is None else asdict(self.form),
            "width": self.width,
            "fate": self.fate,
            "encoding": asdict(self.encoding),
            "shape": self.shape,
        }

    @property
    def is_as_under_auto(self) -> bool:
        return self.form is not None and self.fate != "rounded"

    @property
    def could_have_fewer_bits(self) -> bool:
        """Tells whether `--recompress` would make the values of the matrix narrower."""
        return self.is_as_under_auto and self.encoding.value_bits > BITS_OF_INTEGERS.get(
            self.width, math.inf
        )

    @property
    def verb(self) -> str:
        if self.fate == "rounded" and self.encoding.scales is None:
            return "decoded to"
        return {"kept": "kept as", "encoded": "encoded as", "rounded": "rounded to"}[self.fate]


def read_matrices(index: Mapping[str, Any]) -> list[HeldMatrix]:
    return [HeldMatrix.read(entry) for entry in index.values() if "encoding" in entry]


def report_widths(matrices: Iterable[HeldMatrix]) -> str:
    """Describes the quantised matrices in one line, empty if the checkpoint has none."""
    matrices = list(matrices)
    counts = Counter(
        (matrix.form, matrix.verb, matrix.encoding) for matrix in matrices if matrix.form
    )
    if not counts:
        return ""
    parts = []
    for (form, verb, encoding), count in counts.most_common():
        assert form is not None, "plain matrices are not counted"
        parts.append(f"{count} of {form.name} ({form.bits} bits) {verb} {encoding.description}")
    num_bits = sum(
        matrix.encoding.bits_per_value(matrix.shape[-1]) * math.prod(matrix.shape)
        for matrix in matrices
    )
    num_values = sum(math.prod(matrix.shape) for matrix in matrices)
    parts.append(f"{num_bits / num_values:.1f} bits a weight in memory")
    if any(matrix.could_have_fewer_bits for matrix in matrices):
        parts.append("--recompress would round further matrices to the named width")
    return "quantised matrices: " + "; ".join(parts)
