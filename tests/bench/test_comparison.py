"""Results of Ouzel's and vLLM's benchmarks are compared side by side."""

import json
from pathlib import Path
from typing import Any  # the JSON of a result

import pytest

from ouzel.bench.comparison import compare, comparison_text, pair_runs
from ouzel.bench.result import InvalidResult, Result, read_results
from ouzel.bench.table import number

A = {
    "request_throughput": 2.0,
    "output_throughput": 100.0,
    "p50_ttft_ms": 50.0,
    "mean_itl_ms": 0.0,
    "completed": 10,
}
B = {
    "request_throughput": 3.0,
    "output_throughput": 102.0,
    "median_ttft_ms": 75.0,
    "mean_itl_ms": 1.0,
    "completed": 10,
}


def verdicts() -> dict[str, tuple[float | None, str]]:
    return {each.figure.name: (each.ratio, each.verdict) for each in compare(A, B)}


def test_ratios_are_of_the_second_to_the_first_and_say_which_is_better() -> None:
    assert verdicts() == {
        "request_throughput": (1.5, "better"),
        "output_throughput": (1.02, ""),
        "p50_ttft_ms": (1.5, "worse"),
        "mean_itl_ms": (None, ""),
        "completed": (1.0, ""),
    }


def test_a_run_without_an_answer_is_no_fast_one() -> None:
    fine = {"failed": 0, "request_throughput": 2.0, "p50_ttft_ms": 50.0}
    broken = {"failed": 9, "request_throughput": 0.0, "p50_ttft_ms": 0.0}

    def said(first: Result, second: Result) -> list[tuple[float | None, str]]:
        return [(each.ratio, each.verdict) for each in compare(first, second)]

    assert said(fine, broken) == [(None, "worse"), (0.0, "worse"), (None, "")]
    assert said(broken, fine) == [(0.0, "better"), (None, "better"), (None, "")]


def test_the_text_has_both_values() -> None:
    [line] = [
        each for each in comparison_text(A, B).splitlines() if each.startswith("Request throughput")
    ]
    assert line.split() == ["Request", "throughput", "2", "3", "1.500", "requests/s", "better"]


def test_files_of_different_sweeps_are_refused() -> None:
    with pytest.raises(InvalidResult, match="given 2 and 1"):
        pair_runs([A, A], [B])


@pytest.mark.parametrize(
    "content",
    [
        *("no JSON", "{}", "[]", "[1]", '"a"'),
        '{"request_throughput": "fast"}',
        '{"request_throughput": 1, "itls": [null]}',
        '{"request_throughput": 1, "errors": [{}]}',
        '{"request_throughput": 1, "ouzel": "x"}',
    ],
)
def test_a_file_that_holds_no_result_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InvalidResult, match=r"a\.json: (is not JSON|must be a result)"):
        read_results(path)


def test_a_result_and_a_sweep_are_read(tmp_path: Path) -> None:
    def read(content: Any) -> int:
        (tmp_path / "a.json").write_text(json.dumps(content))
        return len(read_results(tmp_path / "a.json"))

    assert (read(A), read([A, B])) == (1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.00021, "0.00021"),
        (0.01234, "0.0123"),
        (0.5, "0.500"),
        (12.346, "12.35"),
        (12345.6, "12,346"),
    ],
)
def test_numbers_have_three_digits_at_least(value: float | None, text: str) -> None:
    assert number(value) == text
