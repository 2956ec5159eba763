"""Makes the page of a benchmark or of a comparison; texts of servers and files are escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any  # values for the template

import jinja2
from markupsafe import Markup

from ouzel.bench.comparison import compare, describe_load
from ouzel.bench.report.chart import Chart
from ouzel.bench.report.charts import (
    NamedResult,
    have_one_axis,
    is_sweep,
    make_charts,
    make_sweep_charts,
    select_runs,
)
from ouzel.bench.result import Result
from ouzel.bench.summary import first_errors
from ouzel.bench.table import STATISTICS, TOTALS, number, read_value, times


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows are texts: a label, then numbers and perhaps a verdict."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Drawing:
    title: str
    legend: tuple[str, ...]  # empty for a single series
    svg: Markup  # safe: ElementTree has escaped the texts


def report_page(results: Sequence[Result]) -> str:
    """Makes the page of the results of one command; a sweep has several results."""
    first = results[0]
    own = first.get("ouzel") or {}
    load = describe_load(first) if len(results) == 1 else f"{len(results)} loads"
    charts = make_sweep_charts([("", results)]) if is_sweep(results) else []
    named = [NamedResult(describe_load(each), each) for each in results]
    charts += make_charts(named)
    return _page(
        title=str(first.get("model_id", "")),
        subtitle=f"{own.get('workload', '')}; {load}",
        facts=_facts(first),
        remarks=[str(each) for each in own.get("remarks", ())] + _remarks(named),
        tables=[
            table for each in results for table in _tables(each, is_one_of_many=len(results) > 1)
        ],
        charts=charts,
        errors=[error for each in results for error in first_errors(each)],
    )


def comparison_page(pairs: Sequence[tuple[Result, Result]], *, names: tuple[str, str]) -> str:
    firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
    charts = (
        make_sweep_charts([("A", firsts), ("B", seconds)]) if have_one_axis(firsts, seconds) else []
    )
    for a, b in pairs:
        charts += make_charts([NamedResult("A", a), NamedResult("B", b)])
    return _page(
        title=f"{names[0]} and {names[1]}",
        subtitle="B / A is the value of the second result divided by the value of the first",
        facts={
            f"{letter}: {name}": value
            for letter, each in zip("AB", (firsts[0], seconds[0]), strict=True)
            for name, value in _facts(each).items()
        },
        remarks=[],
        tables=[_comparison_table(a, b) for a, b in pairs],
        charts=charts,
        errors=[error for result in (*firsts, *seconds) for error in first_errors(result)],
    )


def _remarks(named: Sequence[NamedResult]) -> list[str]:
    drawn = select_runs(named)
    if len(drawn) == len(named):
        return []
    names = ", ".join(each.name for each in drawn)
    return [f"charts of single requests show {len(drawn)} of the {len(named)} loads: {names}"]


def _facts(result: Result) -> dict[str, str]:
    own: Mapping[str, Any] = result.get("ouzel") or {}
    server, machine = own.get("server") or {}, own.get("machine") or {}
    facts = {
        "command": own.get("command_line"),
        "date": result.get("date"),
        "model": result.get("model_id"),
        "server": own.get("url") or ("this process" if own else None),
        "endpoint": own.get("endpoint") or result.get("backend"),
        "seed": own.get("seed"),
        "goodput": own.get("goodput"),
        **{f"server's {name}": value for name, value in server.items()},
        **{f"client's {name}": value for name, value in machine.items()},
        "Ouzel": own.get("version"),
    }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _tables(result: Result, *, is_one_of_many: bool) -> list[_Table]:
    load = f": {describe_load(result)}" if is_one_of_many else ""
    values = ((figure, read_value(result, figure)) for figure in TOTALS)
    totals = tuple(
        (figure.label_with_unit, number(value)) for figure, value in values if value is not None
    )
    rows = tuple(
        (label, *(number(read_value(result, figure)) for figure in figures))
        for label, figures in times()
    )
    return [
        _Table(f"Totals{load}", ("", ""), totals),
        _Table(f"Milliseconds{load}", ("", *STATISTICS), rows),
    ]


def _comparison_table(a: Result, b: Result) -> _Table:
    rows = (
        (
            each.figure.label_with_unit,
            number(each.first),
            number(each.second),
            "–" if each.ratio is None else f"{each.ratio:.3f}",
            each.verdict,
        )
        for each in compare(a, b)
    )
    return _Table(
        f"{describe_load(a)} / {describe_load(b)}", ("", "A", "B", "B / A", ""), tuple(rows)
    )


def _page(*, charts: Sequence[Chart], **fields: Any) -> str:
    """Renders the template; `fields` are its variables."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_file("page.html.jinja"))
    return template.render(
        style=Markup(_file("page.css")), drawings=[_draw(chart) for chart in charts], **fields
    )


def _draw(chart: Chart) -> _Drawing:
    labels = tuple(series.label for series in chart.series)
    return _Drawing(chart.title, labels if len(labels) > 1 else (), Markup(chart.svg()))


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
