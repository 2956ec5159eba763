"""Measures the use of a sandbox from outside, through directories that it has handed out.

The driver opens these directories before it runs any code: its /proc, which lists exactly the
processes of the sandbox, and its writable file systems.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UTIME = 11  # position in `stat` behind the name; then stime, cutime, cstime
_THREADS = 17


@dataclass(frozen=True, slots=True)
class Usage:
    memory_bytes: int  # the processes'; file systems have sizes of their own
    cpu_s: float
    num_threads: int
    num_inodes: int


def measure(directories: Sequence[int], memory_limit: int) -> Usage:
    """Measures a sandbox; `directories` are /proc and the writable file systems.

    Pages that processes share count once for each process, unless the sum is over the limit: then
    the kernel is asked for the exact size, which takes longer.
    """
    proc, *places = directories
    pids = [name for name in os.listdir(proc) if name.isdecimal()]
    resident = cpu_ticks = num_threads = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            resident += int(_read(proc, f"{pid}/statm").split()[1]) * _PAGE_BYTES
            fields = _read(proc, f"{pid}/stat").rpartition(b")")[2].split()
            cpu_ticks += sum(map(int, fields[_UTIME : _UTIME + 4]))
            num_threads += int(fields[_THREADS])
    if resident > memory_limit:
        resident = sum(_exact_bytes(proc, pid) for pid in pids)
    num_inodes = 0
    for place in places:
        facts = os.fstatvfs(place)
        num_inodes += facts.f_files - facts.f_ffree
    return Usage(resident, cpu_ticks / _TICKS_PER_S, num_threads, num_inodes)


def _exact_bytes(proc: int, pid: str) -> int:
    """Returns the memory of a process; a shared page counts by its part."""
    with suppress(OSError, ValueError, IndexError):
        for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, IndexError):
        return int(_read(proc, f"{pid}/statm").split()[1]) * _PAGE_BYTES
    return 0


def _read(proc: int, name: str) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        return os.read(fd, 16384)
    finally:
        os.close(fd)
