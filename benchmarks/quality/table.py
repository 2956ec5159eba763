"""Writes the tables of measured rows in Markdown, and puts them into a document."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.quality.measured import Row, Rows, VectorRow
from benchmarks.quality.truth import NUM_GREEDY

BEGIN, END = "<!-- quality: begin -->", "<!-- quality: end -->"


def write_tables(rows: Rows, titles: dict[str, str]) -> str:
    """Returns a section for each model, in the order of the titles."""
    sections = []
    for name, title in titles.items():
        if own := [row for row in rows.rows if row.model == name]:
            sections.append(f"### {title}\n\n{_table(own)}")
        if vectors := [row for row in rows.vector_rows if row.model == name]:
            sections.append(f"### {title}\n\n{_vector_table(vectors)}")
    return "\n\n".join(sections)


def replace_tables(document: Path, tables: str) -> None:
    """Puts the tables between the marks of the document."""
    text = document.read_text()
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{document} has no {BEGIN} … {END}"
    document.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}")


def _table(rows: Iterable[Row]) -> str:
    lines = [
        "| options | weights, precision, KV cache | KL | KL, 99 % | perplexity | same best token "
        f"| greedy, of {NUM_GREEDY} |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        figures = row.figures
        cells = [
            _code(row.configuration),
            row.runs_as,
            _kl(figures.kl),
            _kl(figures.kl_p99),
            f"{100 * (figures.perplexity_ratio - 1):+.2f} %",
            f"{100 * figures.same_best:.1f} %",
            f"{figures.num_greedy:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _vector_table(rows: Iterable[VectorRow]) -> str:
    lines = ["| options | cosine, mean | cosine, least |", "|---|---:|---:|"]
    for row in rows:
        lines.append(
            f"| {_code(row.configuration)} | {row.mean_cosine:.5f} | {row.least_cosine:.5f} |"
        )
    return "\n".join(lines)


def _code(configuration: str) -> str:
    return f"`{configuration}`" if configuration.startswith("--") else configuration


def _kl(value: float) -> str:
    return "below 1e-6" if value < 1e-6 else f"{value:.1e}".replace("e-0", "e-")
