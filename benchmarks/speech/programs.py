"""Starts the programs that transcribe, and gives them tasks."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import httpx
import psutil

from benchmarks.server import running_server
from benchmarks.speech.task import (
    Answer,
    Heard,
    SpokenWord,
    Task,
    measure_peak_mib,
    read_answer,
    write_task,
)

# niceness of the engine of a speech model; peers have it too, for machines with other work
NICENESS = 10

Opening = AbstractContextManager["Program"]


class Program(Protocol):
    start_s: float  # seconds from the start of the process until it can transcribe

    def run(self, task: Task) -> Answer: ...

    def count_cpu_s(self) -> float:
        """Returns the seconds of processors that its processes have used."""
        ...


class Worker:
    """A program that runs in a child process and reads lines of JSON.

    `niceness` is added to the niceness of this process.
    """

    def __init__(self, command: Sequence[str], niceness: int = 0) -> None:
        before = time.perf_counter()
        command = ["nice", "-n", str(niceness), *command] if niceness else command
        pipe, log = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self._read()
        self.start_s = time.perf_counter() - before

    def run(self, task: Task) -> Answer:
        assert self.process.stdin is not None
        self.process.stdin.write(write_task(task))
        self.process.stdin.flush()
        return read_answer(self._read())

    def count_cpu_s(self) -> float:
        return _count_cpu_s(psutil.Process(self.process.pid))

    def _read(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, _, content = line.partition(" ")
            if kind == "answer":
                return content
        raise RuntimeError(f"{self.process.args!r} has ended")


class Processes:
    """Several processes of one program, among which files are divided."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self.start_s = max(worker.start_s for worker in workers)

    def run(self, task: Task) -> Answer:
        count = len(self._workers)
        parts = [Task(files=task.files[place::count]) for place in range(count)]
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(lambda worker, part: worker.run(part), self._workers, parts))
        heard: list[Heard | None] = [None] * len(task.files)
        for place, answer in enumerate(answers):
            heard[place::count] = answer.heard
        assert all(each is not None for each in heard)
        whole = tuple(each for each in heard if each is not None)
        return Answer(whole, sum(answer.peak_mib for answer in answers))

    def count_cpu_s(self) -> float:
        return sum(worker.count_cpu_s() for worker in self._workers)


class Server:
    """`ouzel serve`, asked over HTTP."""

    def __init__(self, url: str, process: psutil.Process, start_s: float) -> None:
        self._client = httpx.Client(base_url=url, timeout=None)
        self._process = process
        self.start_s = start_s

    def run(self, task: Task) -> Answer:
        if task.at_once:
            with ThreadPoolExecutor(len(task.files)) as pool:
                heard = list(pool.map(lambda file: self._ask(file, task), task.files))
        else:
            heard = [self._ask(file, task) for file in task.files]
        family = (self._process, *self._process.children(recursive=True))
        return Answer(tuple(heard), sum(measure_peak_mib(each.pid) for each in family))

    def count_cpu_s(self) -> float:
        return _count_cpu_s(self._process)

    def _ask(self, file: str, task: Task) -> Heard:
        fields = {"language": "en", "response_format": "verbose_json"}
        fields |= {"timestamp_granularities[]": "word"} if task.has_words else {}
        fields |= {"chunking_strategy": "auto"} if task.num_chunks else {}
        answer = self._client.post(
            "/v1/audio/transcriptions",
            data=fields,
            files={"file": (Path(file).name, Path(file).read_bytes())},
        )
        answer.raise_for_status()
        content = answer.json()
        words = [
            SpokenWord(each["word"], each["start"], each["end"])
            for each in content.get("words", ())
        ]
        return Heard(content["text"].strip(), tuple(words))


@contextmanager
def open_worker(command: Sequence[str], niceness: int = 0) -> Iterator[Worker]:
    worker = Worker(command, niceness)
    try:
        yield worker
    finally:
        worker.process.terminate()
        worker.process.wait()


@contextmanager
def open_peer(
    python: str, name: str, model: Path, precision: str = "", *, workers: int = 1, threads: int = 2
) -> Iterator[Worker]:
    command = [python, "-m", "benchmarks.speech.peers", name, str(model), precision]
    with open_worker([*command, str(workers), str(threads)], NICENESS) as worker:
        yield worker


@contextmanager
def open_peers(python: str, name: str, model: Path, count: int) -> Iterator[Processes]:
    """Starts several processes of a peer, with one thread each."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(open_peer(python, name, model, threads=1)) for _ in range(count)
        ]
        yield Processes(workers)


@contextmanager
def open_ours(model: Path, *options: str) -> Iterator[Worker]:
    command = [sys.executable, "-m", "benchmarks.speech.ours", str(model), *options]
    with open_worker(command) as worker:
        yield worker


@contextmanager
def open_server(model: Path, *options: str) -> Iterator[Server]:
    before = time.perf_counter()
    serve = [str(model), "--log-level", "warning", "--no-store", *options]
    with running_server(serve) as (url, process):
        yield Server(url, process, time.perf_counter() - before)


def _count_cpu_s(process: psutil.Process) -> float:
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)
