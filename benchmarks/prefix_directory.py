"""Measures the time that --prefix-cache-dir saves after a restart, and its cost.

usage: uv run python -m benchmarks.prefix_directory [--model DIR] [--prompt-len 10000]
           [--rounds 3] [--records 100000]

With --model: each round computes a random prompt in an engine over an empty directory, ends that
engine, and asks again in a new engine: once with the records in the page cache, once with the
records on the disk alone. Then a stream decodes while a finished prompt of 2,048 tokens is written,
in turns with an engine without a directory. Always: the time to open a directory with the given
number of records. Directories are below TMPDIR.
"""

import argparse
import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.one_prompt import Prompts, request, seconds_to_first_token
from ouzel.engine.base import Engine
from ouzel.engine.cache.record_files import DIGEST_BYTES, RecordFiles
from ouzel.serve.engine_factories import openvino_engine

NUM_BESIDE_TOKENS = 2048
NUM_STREAM_TOKENS = 48


@contextmanager
def start_engine(directory: str, model: Path) -> Iterator[Engine]:
    """Makes an engine over the directory that has computed one prompt already."""
    options = {
        "kv_cache_gib": 1.5,
        "prompt_lookup": False,
        "prefix_cache_dir": directory,
        "prefix_cache_dir_gib": 20,
    }
    engine = openvino_engine({"model": {"model": str(model)}, "engine": options})
    seconds_to_first_token(engine, Prompts(seed=0).random(600))
    yield engine
    engine.close()
    del engine
    gc.collect()


def list_records(directory: str) -> list[Path]:
    return list(Path(directory).glob("*/*.*"))


def forget_pages(directory: str) -> None:
    """Removes the records from the page cache."""
    for path in list_records(directory):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def measure_restarts(model: Path, prompt_len: int, num_rounds: int) -> None:
    rows = []
    for number in range(num_rounds):
        token_ids = Prompts(seed=number + 1).random(prompt_len)
        with tempfile.TemporaryDirectory() as directory:
            with start_engine(directory, model) as engine:
                cold = seconds_to_first_token(engine, token_ids)
                hit = seconds_to_first_token(engine, [*token_ids[:-8], *range(300, 308)])
                while len(list_records(directory)) < prompt_len // engine.info.block_size:
                    time.sleep(0.1)
            forget_pages(directory)
            with start_engine(directory, model) as engine:
                from_disk = seconds_to_first_token(engine, token_ids)
            with start_engine(directory, model) as engine:
                warm = seconds_to_first_token(engine, token_ids)
                num_bytes = engine.stats().num_store_bytes
            with start_engine(directory, model) as engine:
                print(loading_beside(engine, token_ids))
        rows.append((cold, hit, warm, from_disk, num_bytes / 2**20))
        print(
            f"cold {cold:.2f} s, hit {hit:.3f}, restarted {warm:.3f}, "
            f"and with cold disk {from_disk:.3f}",
            flush=True,
        )
    cold, hit, warm, from_disk, mib = (median(column) for column in zip(*rows, strict=True))
    print(
        f"{prompt_len} tokens, {mib:.0f} MiB: medians cold {cold:.2f} s; "
        f"of it, in per cent: hit {100 * hit / cold:.2f}"
    )
    print(f"  after a restart {100 * warm / cold:.2f}, with cold disk {100 * from_disk / cold:.2f}")


def loading_beside(engine: Engine, token_ids: list[int]) -> str:
    """Returns the times of a stream's steps before and while a long prompt is loaded."""
    engine.add(request(Prompts(seed=5).random(32), NUM_STREAM_TOKENS))
    times = dict[bool, list[float]]()
    for number in range(NUM_STREAM_TOKENS // 2):
        if number == NUM_STREAM_TOKENS // 4:
            engine.add(request(token_ids))
        started, num_loaded = time.perf_counter(), engine.stats().num_store_loaded
        engine.step()
        is_loading = engine.stats().num_store_loaded > num_loaded
        times.setdefault(is_loading, []).append((time.perf_counter() - started) * 1e3)
    while engine.has_unfinished():
        engine.step()
    loading = times.get(True, [0.0])
    alone = median(times[False][: NUM_STREAM_TOKENS // 4])
    during = f"{median(loading):.0f} ms, at most {max(loading):.0f}"
    return f"  a stream's step {alone:.0f} ms, {len(loading)} steps during the loading {during}"


def step_times(engine: Engine, token_ids: list[int]) -> tuple[list[float], list[bool]]:
    """Returns the milliseconds of a stream's steps after a prompt ended.

    The second value names the steps during which the prompt was written.
    """
    seconds_to_first_token(engine, token_ids)
    engine.add(request(Prompts(seed=len(token_ids)).random(32), NUM_STREAM_TOKENS))
    engine.step()
    times, beside, num_written = [], [], engine.stats().num_store_written
    while engine.has_unfinished():
        started = time.perf_counter()
        engine.step()
        times.append((time.perf_counter() - started) * 1e3)
        beside.append(engine.stats().num_store_written > num_written)
        num_written = engine.stats().num_store_written
    return times, beside


def measure_stream(model: Path, num_rounds: int) -> None:
    prompts = Prompts(seed=99)
    columns: tuple[list[float], ...] = ([], [], [], [])
    with (
        tempfile.TemporaryDirectory() as directory,
        start_engine(directory, model) as writing,
        start_engine("", model) as plain,
    ):
        for _ in range(num_rounds):
            token_ids = prompts.random(NUM_BESIDE_TOKENS)
            times, beside = step_times(writing, token_ids)
            control, _ = step_times(plain, token_ids)
            for offset, row in ((0, times), (2, control)):
                for milliseconds, is_beside in zip(row, beside, strict=True):
                    columns[offset if is_beside else offset + 1].append(milliseconds)
            print(
                f"round: {sum(beside)} of {len(beside)} steps, medians " + format_columns(columns),
                flush=True,
            )
        mib = writing.stats().num_store_bytes / 2**20
        print(
            f"the writing thread took {1e3 * writer_cpu_s() / mib:.2f} ms of CPU for each "
            f"of {mib:.0f} MiB"
        )


def writer_cpu_s() -> float:
    """Returns the processor time of the only thread that writes; Linux counts it in ticks."""
    [writer] = [thread for thread in threading.enumerate() if thread.name == "write-prefixes"]
    fields = (
        Path(f"/proc/self/task/{writer.native_id}/stat")
        .read_text(encoding="ascii")
        .rpartition(")")[2]
        .split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def format_columns(columns: tuple[list[float], ...]) -> str:
    names = ("beside writing", "after it", "the same steps without a directory", "and")
    return ", ".join(
        f"{name} {median(column):.1f} ms"
        for name, column in zip(names, columns, strict=True)
        if column
    )


def measure_opening(num_records: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        directory = Path(root) / "identity"
        directory.mkdir()
        for number in range(num_records):
            (directory / f"{number:032x}.block").write_bytes(bytes(DIGEST_BYTES + 1))
        started = time.perf_counter()
        files = RecordFiles(Path(root), "identity", {"block": 1}, max_bytes=2**40)
        seconds = time.perf_counter() - started
        print(f"a directory of {len(files):,} records is opened in {seconds:.2f} s")
        files.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path)
    parser.add_argument("--prompt-len", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--only", choices=["opening", "stream", "restarts"])
    arguments = parser.parse_args()
    if arguments.only in (None, "opening"):
        measure_opening(arguments.records)
    if arguments.model and arguments.only in (None, "stream"):
        measure_stream(arguments.model, arguments.rounds)
    if arguments.model and arguments.only in (None, "restarts"):
        measure_restarts(arguments.model, arguments.prompt_len, arguments.rounds)


if __name__ == "__main__":
    main()
