"""Several processes run tests at the same time: engines that each take all cores wait for each other."""

import os


def share_of_cores() -> int:
    """This process's, one at least."""
    num_processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max((os.cpu_count() or 1) // num_processes, 1)
