"""Compares embeddings of 64 short texts with other programs, in turns, on one real model.

    uv run python -m benchmarks.embedding_peers MODEL --torch-python PYTHON
        [--onnx-python PYTHON --onnx-model MODEL] [--llama-cpp-bin DIRECTORY --gguf FILE ...]
        [--rounds 15]

MODEL is a directory of sentence-transformers, such as all-MiniLM-L6-v2. The first PYTHON has torch
and sentence-transformers, the second one optimum and ONNX Runtime; its MODEL is the same model in
ONNX. Each round asks every program once for the vectors of all texts in one request. Ouzel and
llama.cpp are asked over HTTP, sentence-transformers runs in its own process.
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.comparison.servers import running_llama_server
from benchmarks.embeddings import ask, ask_reference, reference, server

NUM_TEXTS = 64
_SHORTEST, _LONGEST = 40, 110  # characters
_PRECISIONS = ("int8", "f32")


def read_texts(documents: Path) -> list[str]:
    """Returns sentences of the documents, the first ones of suitable length."""
    prose = "\n\n".join(path.read_text("utf-8") for path in sorted(documents.glob("*.md")))
    sentences = re.split(r"(?<=\.)\s+|\n\n", re.sub(r"(?m)^[#|>`-].*$", "", prose))
    plain = [" ".join(sentence.split()) for sentence in sentences]
    suitable = [each for each in plain if _SHORTEST <= len(each) <= _LONGEST]
    if len(suitable) < NUM_TEXTS:
        raise SystemExit(f"{documents} has {len(suitable)} sentences, {NUM_TEXTS} are needed")
    return suitable[:NUM_TEXTS]


def measure_server(url: str, texts: list[str]) -> float:
    return ask(url, texts)[0]


def open_programs(
    stack: ExitStack, given: argparse.Namespace, texts: list[str]
) -> dict[str, Callable[[], float]]:
    """Starts all programs; returns functions that measure texts per second, by name."""
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    texts_file = scratch / "texts.json"
    texts_file.write_text(json.dumps(texts))
    programs: dict[str, Callable[[], float]] = {}
    for precision in _PRECISIONS:
        url = stack.enter_context(server(given.model, precision, scratch))
        programs[f"Ouzel {precision}"] = partial(measure_server, url, texts)
    torch = stack.enter_context(reference(given.torch_python, given.model, texts_file))
    programs["sentence-transformers, torch f32"] = partial(ask_reference, torch)
    if given.onnx_model is not None:
        onnx = stack.enter_context(
            reference(given.onnx_python, given.onnx_model, texts_file, backend="onnx")
        )
        programs["sentence-transformers, ONNX f32"] = partial(ask_reference, onnx)
    for file in given.gguf:
        options = ["-m", str(file), "--embedding", "-ub", "2048", "-b", "2048", "-np", "64"]
        url, _ = stack.enter_context(running_llama_server(given.llama_cpp_bin, options))
        programs[f"llama.cpp {file.stem}"] = partial(measure_server, url, texts)
    return programs


def run(given: argparse.Namespace) -> None:
    texts = read_texts(given.documents)
    with ExitStack() as stack:
        programs = open_programs(stack, given, texts)
        for measure in programs.values():
            measure()
        rates: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(given.rounds):
            for name, measure in programs.items():
                rates[name].append(measure())
    first, *others = rates
    for name, own_rates in rates.items():
        line = f"{name}: {statistics.median(own_rates):.0f} texts/s"
        if name in others:
            pairs = zip(rates[first], own_rates, strict=True)
            line += f"; {first} is {statistics.median(own / its for own, its in pairs):.2f} times"
        sys.stdout.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--documents", type=Path, default=Path("docs/explanation"))
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--onnx-python", default=sys.executable)
    parser.add_argument("--onnx-model", type=Path)
    parser.add_argument("--llama-cpp-bin", type=Path)
    parser.add_argument("--gguf", type=Path, nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=15)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
