"""Divides the cores among the processes of a run, so that engines do not wait for each other."""

import os


def share_of_cores() -> int:
    """Returns the number of cores for this process, at least one."""
    num_processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max((os.cpu_count() or 1) // num_processes, 1)
