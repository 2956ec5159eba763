"""Compares Whisper with faster-whisper, whisper.cpp and transformers, in turns, on one model.

    uv run python -m benchmarks.speech --model DIRECTORY --ct2 DIRECTORY [--ggml FILE ...]
        --peers-python PYTHON [--torch-python PYTHON] --clips DIRECTORY ... --long FILE
        [--rounds 7] [--only plain timestamps words speed] [--list]

MODEL is a checkpoint of transformers; the others are the same model in the peers' formats. The
first PYTHON has faster-whisper and pywhispercpp, the second one transformers, torch and perhaps
openai-whisper. Each directory of clips has WAV files (16 kHz, mono) and texts.json, and FILE has a
.json file beside it with its `text`. `--list` prints the transcripts and the words that differ.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.speech.accuracy import (
    Openings,
    list_differences,
    list_word_times,
    transcribe_all,
    write_error_rates,
    write_word_times,
)
from benchmarks.speech.programs import (
    Program,
    open_ours,
    open_peer,
    open_peers,
    open_server,
)
from benchmarks.speech.sounds import SoundSet, measure_seconds, read_sets
from benchmarks.speech.speed import Contender, Turns, Workload, measure, write_rates
from benchmarks.speech.task import Task
from benchmarks.speech.texts import measure_error_rate

_OURS, _EXACT = "Ouzel", "Ouzel f32"
_EXACT_OPTIONS = ("--precision", "f32", "--weights", "f32")
_TASKS = {
    "plain": Task(files=(), has_timestamps=False),
    "timestamps": Task(files=()),
    "words": Task(files=(), has_words=True),
}
_BATCH = 8


def print_all(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


def list_programs(given: argparse.Namespace, cache_dir: Path) -> Openings:
    """Returns the programs whose transcripts are compared."""
    ours = partial(open_ours, given.model, "--cache-dir", str(cache_dir))
    peer = partial(open_peer, given.peers_python)
    found: Openings = {
        _OURS: ours,
        _EXACT: partial(ours, *_EXACT_OPTIONS),
        "faster-whisper float32": partial(peer, "faster-whisper", given.ct2, "float32"),
        "faster-whisper int8": partial(peer, "faster-whisper", given.ct2, "int8"),
    }
    if given.torch_python is None:
        return found
    torch = partial(open_peer, given.torch_python)
    more = {name: partial(torch, name, given.model) for name in given.torch_peers}
    return {**found, **more}


def compare_transcripts(given: argparse.Namespace, sets: list[SoundSet], cache_dir: Path) -> None:
    programs = list_programs(given, cache_dir)
    tasks = {title: task for title, task in _TASKS.items() if title in given.only}
    files = [file for each in sets for file in each.files]
    for title, found in transcribe_all(programs, files, tasks).items():
        print(f"\n{title}\n")
        if tasks[title].has_words:
            print_all([*write_word_times(found, _OURS), "", *write_word_times(found, _EXACT)])
        else:
            print_all(write_error_rates(found, sets))
        if given.list:
            compare = list_word_times if tasks[title].has_words else list_differences
            for other in list(programs)[2:]:
                print_all(["", *compare(found, _EXACT, other)])


def open_contenders(
    stack: ExitStack, given: argparse.Namespace, cache_dir: Path
) -> dict[str, Program]:
    """Starts the programs whose speed is compared; Ouzel twice, so that its cache is filled."""
    options = ("--cache-dir", str(cache_dir), "--num-threads", str(given.threads))
    with open_server(given.model, *options):
        pass
    peer = partial(open_peer, given.peers_python)
    whisper = partial(peer, "faster-whisper", given.ct2, "int8", threads=given.threads)
    programs: dict[str, Program] = {
        _OURS: stack.enter_context(open_server(given.model, *options)),
        "faster-whisper int8": stack.enter_context(whisper()),
        "faster-whisper int8, a worker for each thread": stack.enter_context(
            whisper(workers=given.threads, threads=1)
        ),
    }
    for file in given.ggml:
        name = f"whisper.cpp {file.stem.rpartition('-')[2]}"
        programs[name] = stack.enter_context(peer("whisper.cpp", file, threads=given.threads))
    if given.ggml:
        processes = open_peers(given.peers_python, "whisper.cpp", given.ggml[0], _BATCH)
        programs[f"whisper.cpp, {_BATCH} processes"] = stack.enter_context(processes)
    for program_name, program in programs.items():
        print(f"- {program_name}: started in {program.start_s:.1f} s")
    return programs


def list_workloads(
    given: argparse.Namespace, sets: list[SoundSet], programs: Mapping[str, Program]
) -> list[Workload]:
    task = Task(files=(), falls_back=True)
    files = sorted(sets[0].files, key=measure_seconds, reverse=True)
    ours, whisper, _, *ggml = programs
    one = {name: Contender(programs[name], task) for name in (ours, whisper, *ggml[:-1])}
    together = Task(files=(), falls_back=True, at_once=True)
    several = {name: Contender(program, together) for name, program in programs.items()}
    chunks = Task(files=(), falls_back=True, num_chunks=_BATCH)
    batched = {
        f"{ours}, chunking_strategy=auto": Contender(programs[ours], chunks),
        "BatchedInferencePipeline": Contender(
            programs[whisper],
            Task(files=(), falls_back=True, num_chunks=_BATCH, has_timestamps=False),
        ),
        "BatchedInferencePipeline, with timestamps": Contender(programs[whisper], chunks),
    }
    long = [str(given.long)]
    return [
        Workload("one file", [files[0]], one),
        Workload(f"{_BATCH} files at once", files[:_BATCH], several),
        Workload("a long file", long, one),
        Workload("a long file, in parts", long, batched),
    ]


def compare_speed(given: argparse.Namespace, sets: list[SoundSet], cache_dir: Path) -> None:
    text = json.loads(given.long.with_suffix(".json").read_text())["text"]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = open_contenders(stack, given, cache_dir)
        for workload in list_workloads(given, sets, programs):
            is_long = str(given.long) in workload.files
            rounds = max(given.rounds // 3, 1) if is_long else given.rounds
            found = measure(workload, rounds, scratch)
            print()
            print_all(write_rates(workload, found))
            if is_long:
                print_all(write_long_rates(found, text))


def write_long_rates(found: Mapping[str, Turns], text: str) -> list[str]:
    return [
        f"- {name}: {measure_error_rate({'': turns.heard[0].text}, {'': text}):.2%} of the words "
        "are wrong"
        for name, turns in found.items()
    ]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--ct2", type=Path, required=True)
    parser.add_argument("--ggml", type=Path, nargs="*", default=[])
    parser.add_argument("--peers-python", required=True)
    parser.add_argument("--torch-python")
    parser.add_argument("--torch-peers", nargs="+", default=["transformers"])
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--long", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parts = (*_TASKS, "speed")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--list", action="store_true", help="print what differs")
    parser.add_argument("--cache-dir", type=Path, help="prepared weights; default: a new one")
    return parser.parse_args()


def main() -> None:
    given = read_arguments()
    sets = read_sets(given.clips)
    with tempfile.TemporaryDirectory() as directory:
        cache_dir = given.cache_dir or Path(directory)
        if _TASKS.keys() & set(given.only):
            compare_transcripts(given, sets, cache_dir)
        if "speed" in given.only:
            compare_speed(given, sets, cache_dir)


if __name__ == "__main__":
    main()
