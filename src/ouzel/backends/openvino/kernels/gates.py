"""Describes the gated units that the kernels compute."""

from dataclasses import asdict, dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Gate:
    """The unit gate * sigmoid(gate * (linear + cubic * gate^2)) * (up + up_offset).

    Before that `gate` is clamped to at most `limit`, and `up` is clamped to [-limit, limit].
    """

    linear: float
    cubic: float = 0.0
    limit: float = inf
    up_offset: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Tells whether the unit is an activation of the gate times up."""
        return self.limit == inf and self.up_offset == 0

    @property
    def attributes(self) -> dict[str, float]:
        return asdict(self)


SILU = Gate(1.0)
# 0.5 x (1 + tanh(z)) = x sigmoid(2 z) with z = sqrt(2 / pi) (x + 0.044715 x^3)
GELU_TANH = Gate(1.5957691216057308, 0.0713548162726009)
QUICK_GELU = Gate(1.702)
