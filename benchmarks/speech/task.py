"""Defines the orders to a program that transcribes, and its answers, as lines of JSON.

Each program is a process of its own that loads a model once. This file needs only the standard
library, since the programs run in different interpreters.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    files: tuple[str, ...]
    has_timestamps: bool = True  # the model writes timestamps, so that there are segments
    has_words: bool = False  # the times of words are computed
    falls_back: bool = False  # a part that fails is decoded again with higher temperatures
    num_chunks: int = 0  # parts between pauses that are decoded at once; 0: one after the other
    at_once: bool = False  # all files at the same time, else one after the other


@dataclass(frozen=True, slots=True)
class SpokenWord:
    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Heard:
    """The transcript of one file."""

    text: str
    words: tuple[SpokenWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    heard: tuple[Heard, ...]  # one for each file
    peak_mib: float  # most memory of the process so far


Transcribe = Callable[[Task], Sequence[Heard]]


def work(load: Callable[[], Transcribe]) -> None:
    """Runs a program: loads the model, then runs the orders of standard input."""
    before = time.perf_counter()
    transcribe = load()
    _reply({"load_s": time.perf_counter() - before})
    for line in sys.stdin:
        heard = tuple(transcribe(read_task(line)))
        _reply(asdict(Answer(heard, measure_peak_mib("self"))))


def write_task(task: Task) -> str:
    return json.dumps(asdict(task)) + "\n"


def read_task(line: str) -> Task:
    fields = json.loads(line)
    return Task(**fields | {"files": tuple(fields["files"])})


def read_answer(line: str) -> Answer:
    fields = json.loads(line)
    heard = tuple(
        Heard(each["text"], tuple(SpokenWord(**word) for word in each["words"]))
        for each in fields["heard"]
    )
    return Answer(heard, fields["peak_mib"])


def measure_peak_mib(process: int | str) -> float:
    """Returns the largest resident memory that a process of this machine has had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return int(status["VmHWM"].split()[0]) / 1024


def _reply(fields: dict[str, object]) -> None:
    sys.stdout.write("answer " + json.dumps(fields) + "\n")
    sys.stdout.flush()
