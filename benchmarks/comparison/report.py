"""Tables in Markdown, and their section in a document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison.figures import Cell


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of workloads, columns of contenders; the others are compared with the first column."""

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Mapping[str, Cell]]  # workload -> contender -> cell
    notes: Sequence[str] = ()  # settings, and the reasons of missing figures

    def markdown(self) -> str:
        header = ["", *(f"{name}, tokens/s" for name in self.columns)]
        lines = [f"### {self.title}", "", _line(header), "|---|" + "---:|" * len(self.columns)]
        for name, row in self.rows.items():
            lines.append(_line([name, *(_cell(row.get(column)) for column in self.columns)]))
        lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"


def _line(texts: Sequence[str]) -> str:
    return "|" + "|".join(f" {text} " if text else " " for text in texts) + "|"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    text = f"{cell.rate.median:.1f}"
    if cell.tokens_per_step is not None and cell.tokens_per_step > 1.05:
        text += f", {cell.tokens_per_step:.1f} a step"
    if cell.ratio is None:
        return text
    return f"{text} (**{cell.ratio.median:.2f}**, {cell.ratio.low:.2f} to {cell.ratio.high:.2f})"


def section_marks(name: str) -> tuple[str, str]:
    """Returns the lines before and behind the section of this name in RESULTS.md."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def with_section(document: str, section: str, *, begin: str, end: str) -> str:
    """Returns the document with a new section between the two marks.

    Raises ValueError if the marks are missing.
    """
    if (
        document.count(begin) != 1
        or document.count(end) != 1
        or document.index(begin) > document.index(end)
    ):
        raise ValueError(f"{begin} and then {end} must stand in the document once")
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{section.strip()}\n{end}{after}"
