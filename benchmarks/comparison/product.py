"""The interface between `compare` and a product: each product is one file that implements it."""

from dataclasses import dataclass, field
from typing import Any, Protocol  # JSON: options of a product are its own

from benchmarks.comparison.workloads import Workload


class NotAvailable(Exception):
    """The product, or one workload of it, cannot run; the message says why, and the report shows
    it.
    """


@dataclass(frozen=True, slots=True)
class Turn:
    """The figures of one run of a workload."""

    seconds: float
    num_tokens: int
    num_steps: int  # forward passes; where tokens are proposed or forced, a step gives several

    @property
    def rate(self) -> float:
        """Returns tokens per second."""
        return self.num_tokens / self.seconds


class Product(Protocol):
    """A loaded product, alone in its process."""

    settings: dict[str, str]  # the settings of the run, for readers

    def run(self, workload: Workload, seed: int, options: dict[str, Any]) -> Turn:
        """Runs the workload once. Raises NotHad if the product cannot do it."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Contender:
    """A column of the table: a product with its weights and options."""

    name: str
    product: str  # a key of `workers.LOADERS`
    model: str  # a directory or a file
    weights: str = ""  # name of the stored weights; for Ouzel, the value of `--weights`
    options: dict[str, Any] = field(default_factory=dict)  # options of loading
    run_options: dict[str, Any] = field(default_factory=dict)
    rival: str = ""  # name of Ouzel's contender to compare with; empty: the table's first
    # it differs from its product's other columns only where a text is copied
    only_copies: bool = False
