"""Runs contenders in turns: all do the same in each round, and another one begins each round."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.comparison.figures import Cell, cells, turn_order
from benchmarks.comparison.product import Contender, NotAvailable, Turn
from benchmarks.comparison.workers import Machine, Worker
from benchmarks.comparison.workloads import CopiedText, Decode, Row, Workload

Run = Callable[[Workload, int], Turn]  # (workload, seed); raises NotHad


@dataclass(slots=True)
class Measured:
    """The rows of a comparison, which grow while it runs."""

    rivals: Mapping[str, str]  # contender -> Ouzel's contender to compare with, or itself
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def columns(self) -> list[str]:
        """Returns the contenders that have a figure, in their order."""
        return [name for name in self.rivals if any(name in row for row in self.rows.values())]

    def json(self) -> dict[str, object]:
        rows = {
            name: {column: cell.json() for column, cell in row.items()}
            for name, row in self.rows.items()
        }
        return {"compared_with": dict(self.rivals), "rows": rows, "notes": self.notes}


class Workers:
    """The processes of contenders; contenders that differ only in options of a run share one."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._workers: dict[str, Worker] = {}
        self._faults: dict[str, NotAvailable] = {}
        self._names: dict[str, dict[str, None]] = {}  # worker -> its contenders in their order

    def load_run(self, contender: Contender) -> Run:
        """Loads the contender once. Raises NotHad if it could not be loaded."""
        identity = [contender.product, contender.model, contender.weights, contender.options]
        key = json.dumps(identity, sort_keys=True)
        if key in self._faults:
            raise self._faults[key]
        if key not in self._workers:
            try:
                self._workers[key] = Worker(contender, self._machine)
            except NotAvailable as error:
                self._faults[key] = error
                raise
        self._names.setdefault(key, {})[contender.name] = None
        worker = self._workers[key]
        return lambda workload, seed: worker.run(workload, seed, contender.run_options)

    def notes(self) -> list[str]:
        """Returns the settings of each contender."""
        return [
            f"{', '.join(self._names[key])}: {_listed(worker.settings)}; "
            f"loaded in {worker.load_s:.1f} s, "
            f"peak memory {worker.peak_mib:,.0f} MiB"
            for key, worker in self._workers.items()
        ]

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def _listed(settings: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in settings.items())


def measure(
    runs: Mapping[str, Run], workload: Workload, num_rounds: int, found: Measured, row: str
) -> None:
    """Adds a row: each contender runs once to warm up, then once in each round.

    A contender that cannot run is noted and left out.
    """
    turns: dict[str, list[Turn]] = {name: [] for name in runs}
    for round_number in range(num_rounds + 1):
        for name in turn_order(list(turns), round_number):
            try:
                turn = runs[name](workload, round_number)
            except NotAvailable as error:
                found.notes.append(f"{name}, {row}: not available ({error})")
                del turns[name]
            else:
                if round_number:
                    turns[name].append(turn)
    batch = workload.batch if isinstance(workload, Decode) else None
    found.rows[row] = cells(turns, found.rivals, batch)
    figures = {name: round(cell.rate.median, 1) for name, cell in found.rows[row].items()}
    print(f"{row:45}", figures, "tokens/s", flush=True)


def compare(
    contenders: list[Contender], rows: list[Row], machine: Machine, num_rounds: int
) -> Measured:
    """Compares each contender with its rival, or with the first; all are in memory at once."""
    first = contenders[0].name
    found = Measured({each.name: each.rival or first for each in contenders})
    workers = Workers(machine)
    found.notes += [
        f"{each.name} is compared with {each.rival}" for each in contenders if each.rival
    ]
    for row in rows:
        copies = isinstance(row.workload, Decode) and isinstance(row.workload.text, CopiedText)
        runs: dict[str, Run] = {}
        for contender in contenders:
            if contender.only_copies and not copies:
                continue
            try:
                runs[contender.name] = workers.load_run(contender)
            except NotAvailable as error:
                if (note := f"{contender.name}: not available ({error})") not in found.notes:
                    found.notes.append(note)
        measure(runs, row.workload, num_rounds, found, row.name)
    found.notes += workers.notes()
    workers.close()
    return found
