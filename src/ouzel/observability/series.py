"""Writes counters and histograms in Prometheus' text format, fast enough for 20 scrapes per second.

The text of a family is built once as a template for the operator `%`; a scrape only fills in the
numbers.

The format, version 0.0.4:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]


def family_text(
    name: str,
    kind: Kind,
    documentation: str,
    samples: Sequence[tuple[str, Mapping[str, str], float | str]],
) -> str:
    """Returns the text of one family.

    A sample has the suffix of the name, the labels, and the value or a placeholder for it.
    """
    written = name + "_total" if kind == "counter" else name
    lines = [f"# HELP {written} {documentation}", f"# TYPE {written} {kind}"]
    lines += [f"{name}{suffix}{_labels_text(labels)} {value}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels_text(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class Counter:
    """Counts events, also in `total`, if there is one.

    With `label` there is a number for each value of this additional label. Without `label` there
    is one number, which is written even while it is 0.
    """

    kind: Kind = "counter"

    def __init__(
        self,
        documentation: str,
        labels: Mapping[str, str],
        label: str = "",
        total: "Counter | None" = None,
    ) -> None:
        self._documentation = documentation
        self._labels = labels
        self._label = label
        self._total = total
        self._numbers: dict[str, float] = {} if label else {"": 0}
        self._templates: dict[str, str] = {}

    def inc(self, amount: float = 1, value: str = "") -> None:
        """Adds `amount` to the number for the label value `value`."""
        if value not in self._numbers:
            self._templates.clear()
        self._numbers[value] = self._numbers.get(value, 0) + amount
        if self._total is not None:
            self._total.inc(amount, value)

    def text(self, name: str) -> str:
        if name not in self._templates:
            self._templates[name] = self._template(name)
        return self._templates[name] % tuple(self._numbers.values())

    def _template(self, name: str) -> str:
        further = [
            {self._label: _without_places(value)} if self._label else {} for value in self._numbers
        ]
        samples = [("_total", {**_fixed(self._labels), **label}, "%s") for label in further]
        return family_text(name, self.kind, self._documentation, samples)


class Histogram:
    """Counts values in buckets by upper bounds, also in `total`, if there is one."""

    kind: Kind = "histogram"

    def __init__(
        self,
        documentation: str,
        labels: Mapping[str, str],
        bounds: Sequence[float],
        total: "Histogram | None" = None,
    ) -> None:
        self._documentation = documentation
        self._labels = labels
        self._bounds = bounds
        self._total = total
        self._numbers = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._templates: dict[str, str] = {}

    def observe(self, value: float) -> None:
        self._numbers[bisect_left(self._bounds, value)] += 1
        self._sum += value
        if self._total is not None:
            self._total.observe(value)

    def text(self, name: str) -> str:
        if name not in self._templates:
            self._templates[name] = self._template(name)
        cumulated = tuple(accumulate(self._numbers))
        return self._templates[name] % (*cumulated, cumulated[-1], self._sum)

    def _template(self, name: str) -> str:
        labels = _fixed(self._labels)
        bounds = [*(repr(float(bound)) for bound in self._bounds), "+Inf"]
        buckets = [("_bucket", {**labels, "le": bound}, "%s") for bound in bounds]
        samples = [*buckets, ("_count", labels, "%s"), ("_sum", labels, "%s")]
        return family_text(name, self.kind, self._documentation, samples)


def _fixed(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: _without_places(value) for name, value in labels.items()}


def _without_places(text: str) -> str:
    return text.replace("%", "%%")
