"""Measures the use of a sandbox from outside, through directories that it has handed out.

The driver opens these directories before it runs any code: its /proc, which lists exactly the
processes of the sandbox, and its writable file systems.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UTIME = 11  # position in `stat` behind the name; then stime, cutime, cstime
_THREADS = 17
_MAX_READ = 1 << 20
_NET = "1/net"  # the network of the sandbox, which all of its processes share
_TCP_STATE, _TCP_QUEUES = 3, 4  # positions in a line of `net/tcp`
_CLOSED = b"06"  # state of a connection of which the kernel keeps no more than the addresses


@dataclass(frozen=True, slots=True)
class Usage:
    # the processes' and their connections'; file systems have sizes of their own
    memory_bytes: int
    cpu_s: float
    num_threads: int
    num_inodes: int
    num_sockets: int = 0


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
    num_sockets, queued = _measure_sockets(proc)
    cpu_s = cpu_ticks / _TICKS_PER_S
    return Usage(resident + queued, cpu_s, num_threads, num_inodes, num_sockets)


def count_unfiltered(proc: int) -> int:
    """Returns the number of processes without a filter of system calls."""
    statuses = [_read(proc, f"{name}/status") for name in os.listdir(proc) if name.isdecimal()]
    return sum(b"Seccomp:\t2" not in status for status in statuses)


def _measure_sockets(proc: int) -> tuple[int, int]:
    """Returns the number of sockets, and the memory of the kernel that data in TCP takes.

    The data in any other socket is short, so their number limits it.
    """
    num_sockets = queued = 0
    with suppress(OSError, ValueError, IndexError):
        counts = {line[0]: line for line in map(bytes.split, _read_lines(proc, f"{_NET}/sockstat"))}
        num_sockets = int(counts[b"sockets:"][2])
        if int(counts[b"TCP:"][2]) == 0:
            return num_sockets, 0
    for name in ("tcp", "tcp6"):
        with suppress(OSError, ValueError, IndexError):
            for line in _read_lines(proc, f"{_NET}/{name}")[1:]:
                fields = line.split()
                if fields[_TCP_STATE] != _CLOSED:
                    queued += sum(int(each, 16) for each in fields[_TCP_QUEUES].split(b":"))
    return num_sockets, 2 * queued  # each packet takes about as much again


def _read_lines(proc: int, name: str) -> list[bytes]:
    with open(name, "rb", opener=partial(os.open, dir_fd=proc)) as file:
        return file.read(_MAX_READ).splitlines()


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
