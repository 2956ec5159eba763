"""Times the first token of a model that a request loads, for Ouzel and llama.cpp's router in turns.

    uv run python -m benchmarks.loading_on_request MODELS_DIR --llama-cpp-bin DIR [--rounds 5]

Both servers run for the whole time over the same directory of GGUF files, one model loaded at most.
A round takes each model in each server, which begins in turn: the server unloads the model, then
gets a chat of 8 tokens that names it (the time includes the load), then a second chat (the model is
loaded). A file without a chat template gets texts to continue. The files are in the page cache. The
first round has rows of its own: Ouzel then prepares the weights of each file once. Without
--llama-cpp-bin, Ouzel is measured alone.

The program prints tables in Markdown: medians and extremes of the times to the first token, their
ratio within a round (above 1: Ouzel is faster), and the resident memory of each server with all its
processes, before the first load, with each model and after the last was unloaded.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # JSON

import httpx
import psutil

from benchmarks.comparison.figures import Spread, turn_order
from benchmarks.comparison.servers import running_llama_server
from benchmarks.server import measure_resident_mb, running_server
from ouzel.gguf.file import read_header
from ouzel.gguf.tokenizer import list_chat_templates

CONTEXT = 4096  # tokens; the same in both servers
UNLOAD_S = 60.0  # longest time to wait for the end of an unload
SETTLE_S = 2.0  # time of a server to return memory behind an unload
LOADED, FIRST_LOAD, LOAD = "loaded already", "first load", "loaded by the request"
OURS, THEIRS = "Ouzel", "llama-server"


@dataclass(frozen=True)
class Router:
    """A running server that loads the model that a request names."""

    client: httpx.Client
    process: psutil.Process
    unload_path: str
    unload_fields: dict[str, Any]  # the body of an unload also has `model`
    is_loaded: Callable[[dict[str, Any]], bool]  # takes an item of the list of models

    def unload(self, model: str) -> None:
        """Unloads the model, and returns when the server says so."""
        body = {"model": model, **self.unload_fields}
        self.client.post(self.unload_path, json=body).raise_for_status()
        give_up_at = time.monotonic() + UNLOAD_S
        while model in self.loaded_models():
            assert time.monotonic() < give_up_at, f"{model} is still loaded after {UNLOAD_S:.0f} s"
            time.sleep(0.02)

    def loaded_models(self) -> list[str]:
        items = self.client.get("/v1/models").raise_for_status().json()["data"]
        return [item["id"] for item in items if self.is_loaded(item)]

    def time_first_token(self, question: "Question") -> float:
        """Sends a request, and returns the seconds until its first text."""
        begun_s, first_s = time.perf_counter(), 0.0
        with self.client.stream("POST", question.path, json=question.body()) as response:
            if response.status_code != 200:
                reason = response.read().decode()
                raise SystemExit(f"{question.model}: {response.status_code} {reason}")
            for line in response.iter_lines():
                if not first_s and has_text(line):
                    first_s = time.perf_counter() - begun_s
        assert first_s, f"{question.model} answered without a text"
        return first_s


@dataclass(frozen=True)
class Question:
    """A request: a chat, or a text to continue if the model has no chat template."""

    model: str
    is_chat: bool
    text: str

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.is_chat else "/v1/completions"

    def body(self) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.text}]
        prompt = {"messages": messages} if self.is_chat else {"prompt": self.text}
        options = {"max_tokens": 8, "temperature": 0, "stream": True}
        return {"model": self.model, **prompt, **options}


def has_text(line: str) -> bool:
    """Returns whether a line of a stream brings text to its reader."""
    if not line.startswith("data: {"):
        return False
    choices = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
    delta = choices[0].get("delta", {})
    return bool(choices[0].get("text") or delta.get("content") or delta.get("reasoning_content"))


def find_models(directory: Path) -> dict[str, bool]:
    """Returns the names of the models, and whether each has a chat template."""
    return {
        path.stem: list_chat_templates(read_header(path)[0]) is not None
        for path in sorted(directory.glob("*.gguf"))
    }


def connected(url: str) -> httpx.Client:
    """Returns a client with a new connection for each request, which no server closes early."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=url, timeout=None, limits=limits)


@contextmanager
def ouzel_router(models_dir: Path, num_threads: int, cache_dir: str) -> Iterator[Router]:
    options = ["--models-dir", str(models_dir), "--max-loaded-models", "1", "--no-store"]
    options += ["--max-model-len", str(CONTEXT), "--num-threads", str(num_threads)]
    options += ["--cache-dir", cache_dir, "--log-level", "error"]
    with (
        running_server(options) as (url, process),
        connected(url) as client,
    ):
        yield Router(client, process, "/api/generate", {"keep_alive": 0}, is_loaded_by_ouzel)


def is_loaded_by_ouzel(item: dict[str, Any]) -> bool:
    return item["state"] not in ("on_disk", "failed")


@contextmanager
def llama_router(binaries: Path, models_dir: Path, num_threads: int) -> Iterator[Router]:
    options = ["--models-dir", str(models_dir), "--models-max", "1"]
    options += ["-c", str(CONTEXT), "-t", str(num_threads)]
    with (
        running_llama_server(binaries, options) as (url, process),
        connected(url) as client,
    ):
        yield Router(client, process, "/models/unload", {}, is_loaded_by_llama_server)


def is_loaded_by_llama_server(item: dict[str, Any]) -> bool:
    return bool(item["status"]["value"] != "unloaded")


@dataclass(frozen=True)
class Measured:
    """The figures of one server."""

    idle_mb: float  # memory before the first load
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # (model, kind): s
    memory_mb: dict[str, float] = field(default_factory=dict)  # memory when each model is loaded

    def add(self, model: str, kind: str, first_token_s: float) -> None:
        self.times.setdefault((model, kind), []).append(first_token_s)


def measure_model(
    router: Router, found: Measured, model: str, is_chat: bool, round_number: int
) -> None:
    """Takes one turn of a server. Round 0 has the model's first load."""
    kind = LOAD if round_number else FIRST_LOAD
    question = Question(model, is_chat, f"Hello! ({round_number})")
    found.add(model, kind, router.time_first_token(question))
    if round_number:
        question = Question(model, is_chat, f"And once more, please! ({round_number})")
        found.add(model, LOADED, router.time_first_token(question))
    found.memory_mb[model] = measure_resident_mb(router.process)
    router.unload(model)  # a server that waits for its turn holds no model


def measure(
    routers: dict[str, Router], models: dict[str, bool], rounds: int
) -> tuple[dict[str, Measured], dict[str, float]]:
    """Returns the figures of each server, and its memory after the last unload."""
    found = {name: Measured(measure_resident_mb(each.process)) for name, each in routers.items()}
    for round_number in range(rounds + 1):
        for model, is_chat in models.items():
            for name in turn_order(list(routers), round_number):
                measure_model(routers[name], found[name], model, is_chat, round_number)
    time.sleep(SETTLE_S)
    return found, {name: measure_resident_mb(each.process) for name, each in routers.items()}


def print_times(found: dict[str, Measured], models: Iterable[str]) -> None:
    ratio = " ratio |" if THEIRS in found else ""
    print(f"| seconds to the first token | {' | '.join(found)} |{ratio}")
    print("|---|" + "---:|" * (len(found) + bool(ratio)))
    for model in models:
        for kind in (FIRST_LOAD, LOAD, LOADED):
            columns = [each.times[model, kind] for each in found.values()]
            cells = [write_spread(Spread.of(times)) for times in columns]
            if ratio:
                ours, theirs = columns
                ratios = [their_s / our_s for our_s, their_s in zip(ours, theirs, strict=True)]
                cells.append(write_spread(Spread.of(ratios)))
            print(f"| {model}, {kind} | {' | '.join(cells)} |")


def write_spread(spread: Spread) -> str:
    if spread.low == spread.high:
        return f"{spread.median:.2f}"
    return f"{spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def print_memory(
    found: dict[str, Measured], models: Iterable[str], final_mb: dict[str, float]
) -> None:
    print(f"\n| resident memory of all processes, MB | {' | '.join(found)} |")
    print("|---|" + "---:|" * len(found))
    rows = {"nothing loaded yet": [each.idle_mb for each in found.values()]}
    rows |= {
        f"with {model}": [each.memory_mb[model] for each in found.values()] for model in models
    }
    rows["all unloaded"] = [final_mb[name] for name in found]
    for label, values in rows.items():
        print(f"| {label} | {' | '.join(f'{value:.0f}' for value in values)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models_dir", type=Path, help="directory of GGUF files")
    parser.add_argument("--llama-cpp-bin", type=Path, help="directory with llama-server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--num-threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    models = find_models(arguments.models_dir)
    if not models:
        raise SystemExit(f"{arguments.models_dir} must have files *.gguf")
    with tempfile.TemporaryDirectory() as cache_dir, ExitStack() as running:
        ours = ouzel_router(arguments.models_dir, arguments.num_threads, cache_dir)
        routers = {OURS: running.enter_context(ours)}
        if arguments.llama_cpp_bin:
            theirs = llama_router(
                arguments.llama_cpp_bin, arguments.models_dir, arguments.num_threads
            )
            routers[THEIRS] = running.enter_context(theirs)
        found, final_mb = measure(routers, models, arguments.rounds)
    print_times(found, models)
    print_memory(found, models, final_mb)


if __name__ == "__main__":
    main()
