"""The checks of a run find wrong answers, failures, too much memory and unfair waits."""

from dataclasses import replace

import pytest

from benchmarks.visits.checks import compare_waits, report
from benchmarks.visits.model_metrics import ModelMetrics, read_model_metrics
from benchmarks.visits.requests import Outcome, Prompt, Reference, Run, Sample, Visit

A, B = (Prompt(model, "Hello", 8) for model in "ab")
REFERENCES = {A: Reference("alpha", 1.0), B: Reference("beta", 1.0)}


def outcome(prompt: Prompt, sent_s: float, first_s: float | None, text: str = "") -> Outcome:
    visit = Visit(prompt, sent_s)
    end_s = sent_s + 1.0 if first_s is None else first_s + 1.0
    return Outcome(visit, sent_s, first_s, end_s, text or REFERENCES[prompt].text, "", False)


# model b is loaded from 3.0 to 5.0
RUN = Run(
    idle_mb=100.0,
    load_s={"a": 1.0, "b": 2.0},
    loaded_first_s={"a": 0.1, "b": 0.1},
    outcomes=[outcome(A, 0.0, 1.1), outcome(B, 3.0, 5.1), outcome(A, 4.0, 6.1)],
    samples=[Sample(150.0, ("a",)), Sample(290.0, ("a", "b"))],
    gauges={"running": 0.0},
    models={"a": ModelMetrics(0, 1, 1.0, 0), "b": ModelMetrics(0, 1, 2.0, 0)},
)


def is_good(run: Run) -> bool:
    return report(run, REFERENCES, limit_mb=200.0, max_loaded=2)


def with_last(last: Outcome) -> Run:
    return replace(RUN, outcomes=[*RUN.outcomes[:-1], last])


def test_a_good_run_passes() -> None:
    assert is_good(RUN)


@pytest.mark.parametrize(
    "bad",
    [
        with_last(outcome(A, 4.0, 6.1, "beta")),
        with_last(replace(RUN.outcomes[-1], error="503")),
        with_last(replace(RUN.outcomes[-1], text="alpine", has_left=True)),
        with_last(outcome(A, 4.0, 4.0 + 2 * 1.1 + (2.0 + 1.0) + 0.1)),
        replace(RUN, samples=[Sample(301.0, ("a",))]),
        replace(RUN, samples=[Sample(150.0, ("a", "b", "c"))]),
        replace(RUN, gauges={"running": 1.0}),
        replace(RUN, models=RUN.models | {"a": ModelMetrics(1, 1, 1.0, 0)}),
    ],
    ids=["other answer", "failed", "other begin", "waited", "memory", "models", "gauges", "open"],
)
def test_a_bad_run_fails(bad: Run) -> None:
    assert not is_good(bad)


def test_a_client_that_leaves_needs_the_begin_of_the_answer_only() -> None:
    for text in ("", "al"):
        assert is_good(with_last(replace(RUN.outcomes[-1], text=text, has_left=True)))


def test_the_fair_wait_has_the_load_and_the_first_token() -> None:
    waits = compare_waits(RUN, REFERENCES, max_loaded=2)
    assert [wait.fair_s for wait in waits] == pytest.approx([1.1, 2.1, 1.1])
    assert [wait.real_s for wait in waits] == pytest.approx([1.1, 2.1, 2.1])


def test_a_request_without_a_first_token_has_no_wait() -> None:
    left = replace(outcome(B, 3.0, None), text="", has_left=True)
    run = replace(RUN, outcomes=[RUN.outcomes[0], left])
    assert [wait.model for wait in compare_waits(run, REFERENCES, max_loaded=2)] == ["a"]


def test_the_metrics_of_each_model_are_read() -> None:
    text = """# TYPE ouzel_model_open_requests gauge
ouzel_model_state{model_name="a",state="idle"} 1
ouzel_model_open_requests{model_name="a"} 2
ouzel_model_loads_total{model_name="a"} 3
ouzel_model_load_seconds_total{model_name="a"} 4.5
ouzel_model_evictions_total{model_name="a"} 1
"""
    assert read_model_metrics(text) == {"a": ModelMetrics(2, 3, 4.5, 1)}
