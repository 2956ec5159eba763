"""The report is well-formed, and text of a server or a file cannot become markup."""

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ouzel.bench.figures import compute_figures
from ouzel.bench.load import Load
from ouzel.bench.report.axis import linear_axis, logarithmic_axis
from ouzel.bench.report.chart import Chart, Mark, Series
from ouzel.bench.report.charts import NamedResult, make_charts, make_sweep_charts
from ouzel.bench.report.page import comparison_page, report_page
from ouzel.bench.result import Circumstances, Result, build_result
from ouzel.bench.run import Run
from tests.bench.measurements import measurement
from tests.playground.chromium import chromium_path

HOSTILE = """</title><script>alert(1)</script><img src=x onerror="alert(1)">'"&{{ 7*7 }}"""
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Tags(HTMLParser):
    """Collects the tags of a page, and finds tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_tags(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def result(
    load: Load = Load(max_concurrency=2),  # noqa: B008  frozen
    *,
    model: str = "m",
    error: str = "",
) -> Result:
    measurements = [
        measurement(100.0 + number, (0.1, 0.2, 0.2 + number / 10), output_len=3 + number)
        for number in range(1, 5)
    ]
    if error:
        measurements.append(measurement(104.5, (), output_len=0, error=error))
    run = Run(
        load,
        5,
        tuple(measurements),
        datetime(2026, 1, 31, tzinfo=UTC),
        100.0,
        6.0,
        is_stopped=False,
    )
    own_fields = {
        "command_line": "ouzel bench",
        "url": model,
        "server": {"version": model},
        "remarks": (model,),
    }
    circumstances = Circumstances("openai-chat", model, own_fields)
    return build_result(run, compute_figures(run.measurements, run.duration_s), circumstances)


def test_a_run_has_its_figures_and_four_charts() -> None:
    tags = read_tags(report_page([result()]))
    assert tags.seen.count("svg") == 4
    assert "Request throughput (requests/s)" in tags.texts
    assert "script" not in tags.seen
    assert "link" not in tags.seen


def test_a_sweep_has_charts_against_its_loads() -> None:
    page = report_page([result(Load(request_rate=rate)) for rate in (1.0, 2.0, 4.0)])
    tags = read_tags(page)
    assert tags.seen.count("svg") == 8
    assert "requests sent per second" in tags.texts


def test_of_many_loads_with_failures_some_are_drawn_and_named() -> None:
    results = [result(Load(max_concurrency=number), error="no") for number in range(1, 10)]
    page = report_page(results)
    assert (
        "charts of single requests show 5 of the 9 loads: 1 at once, 3 at once, 5 at once" in page
    )
    [whole] = [
        chart
        for chart in make_charts([NamedResult(str(n), each) for n, each in enumerate(results[:8])])
        if chart.mark is Mark.DOTS
    ]
    assert [series.label for series in whole.series] == [*"01234567", "failed"]
    assert len(whole.series[-1].xs) == 8
    assert 'class="s8"' in whole.svg()


def test_a_comparison_has_ratios_and_charts_of_both() -> None:
    tags = read_tags(comparison_page([(result(), result())], names=("a.json", "b.json")))
    assert tags.seen.count("svg") == 4
    assert "B / A" in tags.texts
    assert "1.000" in tags.texts


def test_a_comparison_of_two_sweeps_has_both_against_the_load() -> None:
    sweep = [result(Load(max_concurrency=limit)) for limit in (1, 4)]
    tags = read_tags(
        comparison_page(list(zip(sweep, sweep, strict=True)), names=("a.json", "b.json"))
    )
    assert tags.seen.count("svg") == 4 + 2 * 4
    assert "requests at once" in tags.texts


def test_sweeps_of_different_things_are_not_drawn_against_the_load_of_one() -> None:
    limits = [result(Load(max_concurrency=limit)) for limit in (1, 4)]
    rates = [result(Load(request_rate=rate)) for rate in (1.0, 4.0)]
    for first, second in ((limits, rates), (rates, limits)):
        page = comparison_page(list(zip(first, second, strict=True)), names=("a.json", "b.json"))
        assert read_tags(page).seen.count("svg") == 2 * 4


def test_charts_of_a_sweep_have_its_loads_in_order_and_vllms_medians() -> None:
    results = [{"max_concurrency": limit, "median_ttft_ms": 10.0 * limit} for limit in (8, 1, 4)]
    [ttft] = [
        chart
        for chart in make_sweep_charts([("", results)])
        if chart.title == "Time to first token"
    ]
    assert (ttft.series[0].xs, ttft.series[0].ys) == ([1, 4, 8], [10, 40, 80])


def test_results_of_vllm_without_details_have_no_charts() -> None:
    plain = {
        "model_id": "m",
        "request_throughput": 2.0,
        "request_rate": "inf",
        "max_concurrency": 8,
    }
    assert "svg" not in read_tags(report_page([plain])).seen


def test_a_hostile_server_writes_nothing_into_the_page() -> None:
    hostile = result(model=HOSTILE, error=HOSTILE)
    for page in (
        report_page([hostile]),
        comparison_page([(hostile, hostile)], names=(HOSTILE, HOSTILE)),
    ):
        tags = read_tags(page)
        assert not {"script", "img"} & set(tags.seen)
        assert any(HOSTILE in text for text in tags.texts)
        assert "49" not in "".join(tags.texts)


def test_charts_are_well_formed_whatever_is_drawn() -> None:
    for mark in Mark:
        for values in ([], [0.0], [0.0, 0.0], [1e-6, 1e6], [5.0] * 5000):
            series = Series("<a>", values, values)
            svg = Chart("<b>", "<c>", "&", (series, series), mark, may_be_logarithmic=True).svg()
            assert ElementTree.fromstring(svg).tag == "svg"
            assert "nan" not in svg


@pytest.mark.parametrize("largest", [0.003, 1.0, 7.0, 10.0, 99.0, 12_345.0])
def test_a_linear_axis_ends_at_a_tick_beyond_the_largest_value(largest: float) -> None:
    axis = linear_axis([largest / 3, largest], start=0.0, end=100.0)
    ticks = axis.ticks()
    assert ticks[0] == 0.0
    assert ticks[-1] == pytest.approx(axis.high)
    assert largest <= axis.high * (1 + 1e-9) <= largest * 2
    assert 3 <= len(ticks) <= 7
    assert (axis.at(0.0), axis.at(axis.high)) == (0.0, 100.0)


def test_a_logarithmic_axis_has_ticks_at_round_numbers() -> None:
    assert logarithmic_axis([1.0, 90.0], start=0.0, end=1.0).ticks() == pytest.approx(
        [1, 2, 5, 10, 20, 50]
    )
    assert logarithmic_axis([0.001, 1000.0], start=0.0, end=1.0).ticks() == pytest.approx(
        [0.001, 0.01, 0.1, 1, 10, 100, 1000]
    )


def test_the_page_opens_in_a_browser_without_a_complaint(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = chromium_path()
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    path = tmp_path / "report.html"
    path.write_text(report_page([result(model=HOSTILE, error=HOSTILE)]), encoding="utf-8")
    complaints: list[str] = []
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 740})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        num_charts = page.locator("svg").count()
        browser.close()
    assert complaints == []
    assert num_charts == 4
    assert widths[0] <= widths[1]  # the page fits into the width of a phone
