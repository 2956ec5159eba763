"""Writes the metrics of this process and of its build, under the common names of Prometheus.

https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
"""

import os
import platform
import time
from pathlib import Path

from ouzel.observability.series import Kind, family_text

_PROC = Path("/proc")
_FIRST_FIELD = 3  # number of the first field of /proc/self/stat after the program's name
_START_TIME, _VIRTUAL_MEMORY, _RESIDENT_PAGES = 22, 23, 24  # fields as proc(5) numbers them


def process_metrics(proc: Path = _PROC) -> str:
    """Returns the `process_*` families.

    If a file of `proc` is missing or not readable, only `process_cpu_seconds` is returned.
    """
    cpu_text = "User and system CPU time spent by the HTTP process."
    texts = [_family("process_cpu_seconds", "counter", cpu_text, time.process_time())]
    try:
        stat = (proc / "self" / "stat").read_text().rpartition(")")[2].split()
        limits = (proc / "self" / "limits").read_text().splitlines()
        num_open = len(os.listdir(proc / "self" / "fd"))
        boot_s = _boot_time_s(proc)
    except OSError:
        return texts[0]
    started_s = int(stat[_START_TIME - _FIRST_FIELD]) / os.sysconf("SC_CLK_TCK") + boot_s
    resident = int(stat[_RESIDENT_PAGES - _FIRST_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    virtual = int(stat[_VIRTUAL_MEMORY - _FIRST_FIELD])
    max_open = next(
        (line.split()[3] for line in limits if line.startswith("Max open files")), "unlimited"
    )
    max_fds = float("inf") if max_open == "unlimited" else int(max_open)
    texts += [
        _family(
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory of the HTTP process.",
            resident,
        ),
        _family(
            "process_virtual_memory_bytes", "gauge", "Virtual memory of the HTTP process.", virtual
        ),
        _family(
            "process_start_time_seconds",
            "gauge",
            "Start of the HTTP process since the Unix epoch.",
            started_s,
        ),
        _family(
            "process_open_fds", "gauge", "Open file descriptors of the HTTP process.", num_open
        ),
        _family("process_max_fds", "gauge", "Limit of open file descriptors.", max_fds),
    ]
    return "".join(texts)


def build_metrics(version: str) -> str:
    """Returns `ouzel_build_info`, with the versions as labels and the value 1."""
    labels = {"version": version, "python": platform.python_version()}
    return family_text(
        "ouzel_build_info", "gauge", "The version of Ouzel and of Python.", [("", labels, 1)]
    )


def _boot_time_s(proc: Path) -> float:
    for line in (proc / "stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _family(name: str, kind: Kind, documentation: str, value: float) -> str:
    shown = "+Inf" if value == float("inf") else value
    return family_text(
        name, kind, documentation, [("_total" if kind == "counter" else "", {}, shown)]
    )
