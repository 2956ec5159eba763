"""Starts a server as a user does, for benchmarks that ask it over HTTP."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import psutil


@contextmanager
def running_server(
    options: Sequence[str], log: IO[str] | None = None
) -> Iterator[tuple[str, psutil.Process]]:
    """Yields the URL, without a path, and the process of `ouzel serve` on a free port."""
    command = [sys.executable, "-m", "ouzel", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r" at (http\S+)/v1", line):
                yield found[1], psutil.Process(process.pid)
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait()


def measure_resident_mb(process: psutil.Process) -> float:
    """Returns the resident memory of a process and all its descendants, in MB.

    Memory that several of them share counts several times.
    """
    total_bytes = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total_bytes += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total_bytes / 1e6
