"""`benchmarks.compare` computes ratios and tables from figures; no product is started here."""

import re
from pathlib import Path

import pytest

from benchmarks.comparison.figures import Spread, cells, turn_order
from benchmarks.comparison.preparation import set_rival
from benchmarks.comparison.product import Contender, NotAvailable, Turn
from benchmarks.comparison.report import Table, section_marks, with_section
from benchmarks.comparison.rounds import Measured, Run, compare, measure
from benchmarks.comparison.workers import Machine
from benchmarks.comparison.workloads import Prefill, Row, Workload

RIVALS = {"ours": "ours", "theirs": "ours"}
BEGIN, END = section_marks("shape")


def turn(rate: float, num_steps: int = 100) -> Turn:
    return Turn(seconds=100 / rate, num_tokens=100, num_steps=num_steps)


def test_a_ratio_is_taken_within_each_round() -> None:
    ours, theirs = [turn(10), turn(20), turn(60)], [turn(5), turn(40), turn(20)]
    found = cells({"ours": ours, "theirs": theirs}, RIVALS)
    # The ratio of the medians would be 1.0.
    assert found["theirs"].ratio == Spread(median=2.0, low=0.5, high=3.0)
    assert found["theirs"].rate == Spread(20.0, 5.0, 40.0)
    assert found["ours"].ratio is None


def test_without_a_rival_there_are_rates_only() -> None:
    assert cells({"theirs": [turn(5)]}, RIVALS)["theirs"].ratio is None


def test_rounds_of_different_number_have_no_ratio() -> None:
    with pytest.raises(ValueError, match="shorter"):
        cells({"ours": [turn(1), turn(1)], "theirs": [turn(1)]}, RIVALS)


def test_each_product_is_compared_with_its_own_rival() -> None:
    turns = {
        "ours": [turn(10)],
        "ours, small": [turn(30)],
        "theirs": [turn(10)],
        "theirs, small": [turn(10)],
    }
    found = cells(turns, RIVALS | {"ours, small": "ours", "theirs, small": "ours, small"})
    ratios = {name: cell.ratio.median for name, cell in found.items() if cell.ratio is not None}
    assert ratios == pytest.approx({"ours, small": 1 / 3, "theirs": 1.0, "theirs, small": 3.0})


def test_tokens_per_step_count_one_sequence() -> None:
    assert cells({"ours": [turn(1, num_steps=20)]}, RIVALS, batch=2)["ours"].tokens_per_step == 2.5


def test_each_product_begins_one_round_in_turn() -> None:
    orders = [turn_order(["a", "b", "c"], round_number) for round_number in range(3)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


def test_a_row_counts_the_rounds_after_the_first_and_notes_failures() -> None:
    seeds: dict[str, list[int]] = {"ours": [], "theirs": []}

    def make_run(name: str, rate: float) -> Run:
        def run(workload: Workload, seed: int) -> Turn:
            seeds[name].append(seed)
            return turn(rate * (seed or 1000))

        return run

    def refuse(workload: Workload, seed: int) -> Turn:
        raise NotAvailable("it has no such thing")

    found = Measured(RIVALS)
    runs = {"ours": make_run("ours", 4), "broken": refuse, "theirs": make_run("theirs", 2)}
    measure(runs, Prefill(8), 3, found, "prefill")
    assert seeds == {"ours": [0, 1, 2, 3], "theirs": [0, 1, 2, 3]}
    assert found.rows["prefill"]["ours"].rate == Spread(8.0, 4.0, 12.0)
    assert found.columns() == ["ours", "theirs"]
    assert found.notes == ["broken, prefill: not available (it has no such thing)"]


def test_a_product_that_does_not_load_is_noted_once(tmp_path: Path) -> None:
    contender = Contender("llama.cpp", "llama.cpp", str(tmp_path / "missing.gguf"))
    rows = [Row("prefill 8", Prefill(8)), Row("prefill 16", Prefill(16))]
    found = compare([contender], rows, Machine(str(tmp_path), 1, 1.0), 1)
    assert found.columns() == []
    [note] = found.notes
    assert re.search(
        r"^llama.cpp: not available "
        r"\((ModuleNotFoundError|RuntimeError): .*(llama_cpp|missing.gguf)",
        note,
    )


def test_a_table_shows_rates_ratios_and_gaps() -> None:
    rows = {
        "batch 1": cells({"ours": [turn(10), turn(20)], "theirs": [turn(5), turn(5)]}, RIVALS),
        "copy": cells({"ours": [turn(8, num_steps=25)]}, RIVALS, batch=1),
    }
    table = Table(
        "Random, 8 bits",
        ["ours", "theirs"],
        rows,
        ["theirs, copy: not available"],
    )
    assert table.markdown().splitlines() == [
        "### Random, 8 bits",
        "",
        "| | ours, tokens/s | theirs, tokens/s |",
        "|---|---:|---:|",
        "| batch 1 | 15.0 | 5.0 (**3.00**, 2.00 to 4.00) |",
        "| copy | 8.0, 4.0 a step | – |",
        "",
        "- theirs, copy: not available",
    ]


def test_only_the_text_between_the_marks_is_replaced() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = with_section(document, "new\n", begin=BEGIN, end=END)
    assert once == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert with_section(once, "new\n", begin=BEGIN, end=END) == once


@pytest.mark.parametrize("document", ["", f"{BEGIN}", f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_document_without_both_marks_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="must stand in the document once"):
        with_section(document, "new", begin=BEGIN, end=END)


def test_peers_with_proposals_are_compared_with_ours_with_proposals() -> None:
    ours = [
        Contender("ours", "ouzel", ""),
        Contender("ours, proposing", "ouzel", "", only_copies=True),
    ]
    plain = Contender("theirs", "genai", "")
    lookup = Contender("theirs, lookup", "genai", "", only_copies=True)
    assert [set_rival(each, ours).rival for each in (plain, lookup)] == ["", "ours, proposing"]
    assert set_rival(lookup, ours[:1]).rival == ""
