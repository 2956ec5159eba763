"""Measures how fast programs transcribe, in turns."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.comparison.figures import Spread
from benchmarks.speech.programs import Program
from benchmarks.speech.sounds import copy_with_noise, measure_seconds
from benchmarks.speech.task import Heard, Task

_REST_S = 0.4  # threads of a program may spin a while after its turn


@dataclass(frozen=True, slots=True)
class Contender:
    program: Program
    task: Task


@dataclass(slots=True)
class Turns:
    """The turns of one program at one workload."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)  # the sum over all processors
    heard: tuple[Heard, ...] = ()  # transcripts of the last turn
    peak_mib: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    title: str
    files: Sequence[str]
    contenders: Mapping[str, Contender]  # the first is Ouzel


def measure(workload: Workload, rounds: int, scratch: Path) -> dict[str, Turns]:
    """Runs all contenders in turns, each round with other sounds; a first round is not counted."""
    turns = {name: Turns() for name in workload.contenders}
    for number in range(rounds + 1):
        files = tuple(copy_with_noise(file, scratch, number) for file in workload.files)
        names = list(workload.contenders)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            contender = workload.contenders[name]
            time.sleep(_REST_S)
            before, cpu_before = time.perf_counter(), contender.program.count_cpu_s()
            answer = contender.program.run(replace(contender.task, files=files))
            seconds = time.perf_counter() - before
            if number:
                turns[name].seconds.append(seconds)
                cpu_seconds = contender.program.count_cpu_s() - cpu_before
                turns[name].cpu_seconds.append(cpu_seconds)
            turns[name].heard, turns[name].peak_mib = answer.heard, answer.peak_mib
        for file in files:
            Path(file).unlink()
    return turns


def write_rates(workload: Workload, found: Mapping[str, Turns]) -> list[str]:
    """Returns a table: seconds, seconds of sound in a second, and Ouzel's speed over a peer's.

    The seconds of processors depend less on other work of the machine.
    """
    sound_s = sum(map(measure_seconds, workload.files))
    lines = [
        f"| {workload.title} | seconds | sound in a second | Ouzel is | seconds of CPU "
        "| peak memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    ours = next(iter(found.values())).seconds
    for name, turns in found.items():
        seconds = Spread.of(turns.seconds)
        ratio = Spread.of([theirs / own for own, theirs in zip(ours, turns.seconds, strict=True)])
        times = f"**{ratio.median:.2f}**, {ratio.low:.2f} to {ratio.high:.2f}"
        lines.append(
            f"| {name} | {seconds.median:.3f} | {sound_s / seconds.median:.0f} s | "
            f"{'' if turns.seconds is ours else times} | {median(turns.cpu_seconds):.2f} | "
            f"{turns.peak_mib:.0f} MiB |"
        )
    return lines
