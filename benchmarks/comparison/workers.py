"""Runs a product in a process of its own: it loads, then runs the orders of standard input.

    python -m benchmarks.comparison.workers ORDER    (as `Worker` starts it)

Each order is a line of JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any  # JSON between the processes

from benchmarks.comparison.product import Contender, NotAvailable, Product, Turn
from benchmarks.comparison.workloads import (
    CopiedText,
    Decode,
    Prefill,
    RandomText,
    Requests,
    Workload,
)

KINDS: dict[str, type[Any]] = {each.__name__: each for each in (Decode, Prefill, Requests)}
TEXTS: dict[str, type[Any]] = {each.__name__: each for each in (RandomText, CopiedText)}


@dataclass(frozen=True, slots=True)
class Machine:
    """The options that all products share."""

    scratch: str
    num_threads: int
    kv_cache_gib: float


def workload_json(workload: Workload) -> dict[str, Any]:
    """Returns the text that `read_workload` reads."""
    fields = {"kind": type(workload).__name__, **asdict(workload)}
    if isinstance(workload, Decode):
        fields["text"] = {"kind": type(workload.text).__name__, **asdict(workload.text)}
    return fields


def read_workload(fields: dict[str, Any]) -> Workload:
    fields = dict(fields)
    kind = KINDS[fields.pop("kind")]
    if text := fields.pop("text", None):
        text = dict(text)
        fields["text"] = TEXTS[text.pop("kind")](**text)
    workload: Workload = kind(**fields)
    return workload


# Each imports its own product only


def load_ours(contender: Contender, machine: Machine) -> Product:
    from benchmarks.comparison.ours import Ours

    return Ours(contender, Path(machine.scratch), machine.num_threads, machine.kv_cache_gib)


def load_genai(contender: Contender, machine: Machine) -> Product:
    from benchmarks.comparison.genai import GenAI

    return GenAI(contender, machine.num_threads, machine.kv_cache_gib)


def load_llama_cpp(contender: Contender, machine: Machine) -> Product:
    from benchmarks.comparison.llamacpp import LlamaCpp

    return LlamaCpp(contender, machine.num_threads)


LOADERS: dict[str, Callable[[Contender, Machine], Product]] = {
    "ouzel": load_ours,
    "genai": load_genai,
    "llama.cpp": load_llama_cpp,
}


def work(order: dict[str, Any]) -> None:
    """Runs the child process."""
    before = time.perf_counter()
    try:
        product = LOADERS[order["contender"]["product"]](
            Contender(**order["contender"]), Machine(**order["machine"])
        )
    except (ImportError, NotAvailable, OSError, RuntimeError) as error:
        _reply({"not_had": f"{type(error).__name__}: {error}"})
        return
    _reply(
        {
            "load_s": time.perf_counter() - before,
            "settings": product.settings,
            "peak_mib": _peak_mib(),
        }
    )
    for line in sys.stdin:
        task = json.loads(line)
        try:
            turn = product.run(read_workload(task["workload"]), task["seed"], task["options"])
        except (NotAvailable, RuntimeError) as error:
            _reply({"not_had": str(error)})
        else:
            _reply({"turn": asdict(turn), "settings": product.settings, "peak_mib": _peak_mib()})
    product.close()


def _reply(answer: dict[str, Any]) -> None:
    sys.stdout.write("answer " + json.dumps(answer) + "\n")
    sys.stdout.flush()


def _peak_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1024


class Worker:
    """A product in its process. Raises NotHad if it cannot be loaded."""

    def __init__(self, contender: Contender, machine: Machine) -> None:
        order = json.dumps({"contender": asdict(contender), "machine": asdict(machine)})
        command = [sys.executable, "-m", "benchmarks.comparison.workers", order]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.settings: dict[str, str] = {}
        self.peak_mib = 0.0
        try:
            self.load_s = float(self._answer()["load_s"])
        except NotAvailable:
            self.close()
            raise

    def run(self, workload: Workload, seed: int, options: dict[str, Any]) -> Turn:
        """Runs a workload. Raises NotHad if the product cannot do it."""
        assert self._process.stdin is not None
        task = {"workload": workload_json(workload), "seed": seed, "options": options}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return Turn(**self._answer()["turn"])

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                if "not_had" in answer:
                    raise NotAvailable(answer["not_had"])
                self.settings, self.peak_mib = answer["settings"], float(answer["peak_mib"])
                return answer
        raise NotAvailable(f"its process ended with {self._process.wait()}")


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
