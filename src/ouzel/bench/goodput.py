"""Reads the limits of goodput, which counts the requests per second within all limits."""

from collections.abc import Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits the times of a request, in milliseconds; None is no limit."""

    ttft: float | None = None
    tpot: float | None = None
    e2el: float | None = None

    def are_kept(self, *, ttft_s: float, tpot_s: float, e2el_s: float) -> bool:
        pairs = ((self.ttft, ttft_s), (self.tpot, tpot_s), (self.e2el, e2el_s))
        return all(limit_ms is None or taken_s * 1000 <= limit_ms for limit_ms, taken_s in pairs)

    def __str__(self) -> str:
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(
            f"{name} <= {limit:g} ms" for name, limit in limits.items() if limit is not None
        )


def read_limits(pairs: Sequence[str]) -> Limits | None:
    """Reads limits such as `ttft:500`, `tpot:50` and `e2el:10000`; None without any.

    Raises ValueError.
    """
    known = [field.name for field in fields(Limits)]
    limits: dict[str, float] = {}
    for pair in pairs:
        name, _, number = pair.partition(":")
        try:
            limit_ms = float(number)
        except ValueError:
            limit_ms = -1.0
        if name not in known or name in limits or not 0 < limit_ms < float("inf"):
            raise ValueError(
                f"must be one or more of ttft:MS, tpot:MS and e2el:MS, each once, given {pair!r}"
            )
        limits[name] = limit_ms
    return Limits(**limits) if limits else None
