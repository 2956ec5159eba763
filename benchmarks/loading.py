"""Times `ouzel serve MODEL` from the command to the first token of a short chat, in turns.

    uv run python -m benchmarks.loading MODEL_DIR . ../other-checkout [--rounds 5] [--cold]
        [-- --weights int4 ...]

Each checkout needs its own `.venv` (`uv sync`). In a round each checkout makes a first load, with
an empty cache, and a second load. The program prints medians: seconds to the first token, processor
seconds of all processes until then, and the sum of the processes' peaks of memory. With --cold the
system drops the files of the checkpoint and of the cache from memory before each load. Options of
the server follow `--`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import psutil

CHAT = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 4, "stream": True}
Figures = dict[str, float]


def load(checkout: Path, model: Path, cache_dir: str, options: Sequence[str]) -> Figures:
    """Starts the server once, and returns its figures."""
    command = [
        str(checkout / ".venv/bin/python"),
        "-m",
        "ouzel",
        "serve",
        str(model),
        "--port",
        "0",
        "--no-store",
    ]
    command += ["--log-level", "error", "--cache-dir", cache_dir, *options]
    started = time.perf_counter()
    # Without the variables that keep Python from storing compiled modules, whose cost would count.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=checkout, env=environment
    )
    try:
        assert process.stdout is not None
        announcement = ""
        while "curl " not in announcement:
            line = process.stdout.readline()
            assert line, f"the server of {checkout} ended"
            announcement += line
        ready_s = time.perf_counter() - started
        url = re.search(r"at (https?://\S+/v1)", announcement)
        assert url is not None
        with httpx.stream(
            "POST", f"{url[1]}/chat/completions", json=CHAT, timeout=None
        ) as response:
            response.raise_for_status()
            lines = response.iter_lines()
            next(lines)  # a stream begins with the first token
            first_token_s = time.perf_counter() - started
            processes = [
                psutil.Process(process.pid),
                *psutil.Process(process.pid).children(recursive=True),
            ]
            cpu_s = sum(sum(each.cpu_times()[:2]) for each in processes)
            peak = sum(map(peak_bytes, processes))
            assert "data: [DONE]" in list(lines)
    finally:
        process.terminate()
        process.wait()
    return {
        "ready_s": ready_s,
        "first_token_s": first_token_s,
        "cpu_s": cpu_s,
        "peak_mib": peak / 2**20,
    }


def peak_bytes(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_files(*directories: Path) -> None:
    """Makes the system write the files, and drop its copies in memory."""
    for path in (
        path for directory in directories for path in directory.rglob("*") if path.is_file()
    ):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def measure_round(
    checkout: Path, model: Path, *, cold: bool, options: Sequence[str]
) -> dict[str, Figures]:
    cache_dir = tempfile.mkdtemp()
    try:
        figures = {}
        for name in ("first", "second"):
            if cold:
                forget_files(model, Path(cache_dir))
            figures[name] = load(checkout, model, cache_dir, options)
        sizes = [path.stat().st_size for path in Path(cache_dir).rglob("*") if path.is_file()]
        figures["cache"] = {"mib": sum(sizes) / 2**20}
        return figures
    finally:
        shutil.rmtree(cache_dir)


def main() -> None:
    own, options = sys.argv[1:], list[str]()
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args(own)
    checkouts = [checkout.resolve() for checkout in arguments.checkouts]
    rounds: dict[Path, list[dict[str, Figures]]] = {checkout: [] for checkout in checkouts}
    for number in range(arguments.rounds):
        for checkout in checkouts[:: 1 if number % 2 else -1]:
            measured = measure_round(
                checkout, arguments.model.resolve(), cold=arguments.cold, options=options
            )
            rounds[checkout].append(measured)
            print(number, checkout.name, measured, file=sys.stderr, flush=True)
    for checkout, all_rounds in rounds.items():
        print(checkout)
        for name, figures in all_rounds[0].items():
            medians = {
                what: round(statistics.median(each[name][what] for each in all_rounds), 2)
                for what in figures
            }
            print(f"  {name}: {medians}")


if __name__ == "__main__":
    main()
