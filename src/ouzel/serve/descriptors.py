"""Shares the file descriptors of the process between connections, the engine and the logs."""

import resource

import msgspec

from ouzel.api.http.server.connections import MAX_CONNECTIONS, NUM_SPARE
from ouzel.config import LimitsConfig
from ouzel.options.invalid_option import InvalidOption

_RESERVED = 128  # descriptors for the store, the logs and the engine's next process
_MAX_FILES = 2**20  # the limit if the system has none
MAX_WATCHING = 64  # connections to the port of the metrics


def with_max_connections(limits: LimitsConfig, *, has_metrics_port: bool) -> LimitsConfig:
    """Raises the limit of open files, and sets `max_connections` to the number that it allows.

    Raises InvalidOption if the limit is too low, or too low for the given `max_connections`.
    """
    num_files = raise_limit()
    num_watching = MAX_WATCHING + NUM_SPARE if has_metrics_port else 0
    most = num_files - min(_RESERVED, num_files // 2) - NUM_SPARE - num_watching
    if most < 1:
        raise InvalidOption(
            f"the limit of open files is {num_files}, which is too low to serve: see `ulimit -n`"
        )
    if limits.max_connections is None:
        return msgspec.structs.replace(limits, max_connections=min(most, MAX_CONNECTIONS))
    if limits.max_connections > most:
        reason = f"by the limit of {num_files} open files (ulimit -n)"
        raise InvalidOption(
            f"--max-connections: must be <= {most} {reason}, given {limits.max_connections}"
        )
    return limits


def raise_limit() -> int:
    """Raises the soft limit of open files to the hard limit, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft >= most:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
