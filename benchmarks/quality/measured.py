"""Measured rows: one configuration of one model each, stored in a file of JSON lines."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.quality.figures import Figures


@dataclass(frozen=True)
class Row:
    model: str
    configuration: str
    runs_as: str  # weights, precision and cache type as the engine reports them
    figures: Figures


@dataclass(frozen=True)
class VectorRow:
    model: str
    configuration: str
    least_cosine: float
    mean_cosine: float


class Rows:
    """A row that is in the file is not measured again; without a file rows are kept in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: list[Row] = []
        self.vector_rows: list[VectorRow] = []
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                self._take(json.loads(line))

    def has(self, model: str, configuration: str) -> bool:
        rows: list[Row | VectorRow] = [*self.rows, *self.vector_rows]
        return any((row.model, row.configuration) == (model, configuration) for row in rows)

    def add(self, row: Row | VectorRow) -> None:
        fields = asdict(row)
        self._take(fields)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(fields) + "\n")

    def _take(self, fields: dict[str, object]) -> None:
        if isinstance(figures := fields.pop("figures", None), dict):
            self.rows.append(Row(**fields, figures=Figures(**figures)))  # type: ignore[arg-type]
            fields["figures"] = figures
        else:
            self.vector_rows.append(VectorRow(**fields))  # type: ignore[arg-type]
