"""Checks a run and prints its table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from statistics import median

from benchmarks.fair_wait import Arrival, compute_fair_waits
from benchmarks.visits.requests import Outcome, Prompt, Reference, Run


@dataclass(frozen=True, slots=True)
class Wait:
    """The real and the fair wait of a request for its first token."""

    model: str
    real_s: float
    fair_s: float


def report(
    run: Run, references: Mapping[Prompt, Reference], limit_mb: float, max_loaded: int
) -> bool:
    """Prints the figures, and returns whether all checks hold."""
    waits = compare_waits(run, references, max_loaded)
    slack_s = compute_slack(run, references)
    unfair = [wait for wait in waits if wait.real_s > 2 * wait.fair_s + slack_s]
    failed = [each for each in run.outcomes if each.error]
    wrong = [each for each in run.outcomes if not is_right(each, references[each.visit.prompt])]
    peak_mb = max(sample.memory_mb for sample in run.samples) - run.idle_mb
    most_loaded = max(len(sample.loaded) for sample in run.samples)
    num_texts = len({each.text for each in references.values()})
    left = [each for each in run.outcomes if each.has_left]
    early = sum(each.first_s is None for each in left)
    lines = {
        "requests": f"{len(run.outcomes)} in {max(each.end_s for each in run.outcomes):.1f} s",
        "different references": f"{num_texts} of {len(references)} prompts",
        "clients that left": f"{len(left)}, {early} of them before the first token",
        "failed": str(len(failed)),
        "answers unlike the reference": str(len(wrong)),
        "models in memory, at most": f"{most_loaded} (limit {max_loaded})",
        "memory above the empty server, at most": f"{peak_mb:.0f} MB (limit {limit_mb:.0f} MB)",
        "memory of the empty server": f"{run.idle_mb:.0f} MB",
        "wait for the first token, median": write_waits(waits, median),
        "wait for the first token, longest": write_waits(waits, max),
        "longest load and longest answer together": f"{slack_s:.2f} s",
        "requests beyond twice the fair wait and these": str(len(unfair)),
        "gauges at the end": ", ".join(f"{name} {value:g}" for name, value in run.gauges.items()),
    }
    print("| | |\n|---|---|")
    for label, value in lines.items():
        print(f"| {label} | {value} |")
    print_models(run)
    for each in [*failed, *wrong][:10]:
        print("WRONG", each.visit.prompt, repr(each.text), each.error)
    for wait in unfair[:10]:
        print("UNFAIR", wait)
    return not (
        failed
        or wrong
        or unfair
        or peak_mb > limit_mb
        or most_loaded > max_loaded
        or any(run.gauges.values())
        or any(each.num_open for each in run.models.values())
    )


def compare_waits(run: Run, references: Mapping[Prompt, Reference], max_loaded: int) -> list[Wait]:
    """Returns the waits of all requests that got a first token in both servers."""
    arrivals = [make_arrival(each, references[each.visit.prompt]) for each in run.outcomes]
    waits = []
    fair_waits = compute_fair_waits(arrivals, run.load_s, max_loaded)
    for outcome, fair_s in zip(run.outcomes, fair_waits, strict=True):
        if fair_s is not None and outcome.first_s is not None:
            model = outcome.visit.prompt.model
            real_s = outcome.first_s - outcome.sent_s
            waits.append(Wait(model, real_s, fair_s + run.loaded_first_s[model]))
    return waits


def compute_slack(run: Run, references: Mapping[Prompt, Reference]) -> float:
    """Returns the seconds of the longest load and the longest answer together.

    The fair server may hold other models than the real one: a model that it holds must perhaps be
    loaded in the real one, after the last answer of another model.
    """
    arrivals = [make_arrival(each, references[each.visit.prompt]) for each in run.outcomes]
    return max(run.load_s.values()) + max(arrival.open_s for arrival in arrivals)


def make_arrival(outcome: Outcome, reference: Reference) -> Arrival:
    """An answer that was read to its end took its real time; another one, its reference's."""
    is_whole = outcome.first_s is not None and not outcome.has_left
    open_s = outcome.end_s - outcome.first_s if is_whole and outcome.first_s else reference.open_s
    leaves_s = outcome.end_s if outcome.has_left else inf
    return Arrival(outcome.visit.prompt.model, outcome.sent_s, open_s, leaves_s)


def is_right(outcome: Outcome, reference: Reference) -> bool:
    if outcome.has_left:
        return reference.text.startswith(outcome.text)
    return bool(outcome.error) or outcome.text == reference.text


def write_waits(waits: list[Wait], summarize: Callable[[Iterable[float]], float]) -> str:
    real_s = summarize(wait.real_s for wait in waits)
    return f"{real_s:.2f} s, in a fair server {summarize(wait.fair_s for wait in waits):.2f} s"


def print_models(run: Run) -> None:
    columns = "requests", "load alone, s", "first token when loaded, s"
    print(f"\n| model | {' | '.join(columns)} | loads | mean load, s | unloads for room |")
    print("|---|" + "---:|" * 6)
    for model, found in run.models.items():
        number = sum(each.visit.prompt.model == model for each in run.outcomes)
        cells = f"{number} | {run.load_s[model]:.2f} | {run.loaded_first_s[model]:.2f}"
        mean_s = found.load_s / max(found.num_loads, 1)
        print(f"| {model} | {cells} | {found.num_loads} | {mean_s:.2f} | {found.num_evictions} |")
    print()
