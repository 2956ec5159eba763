"""Every connection takes a file descriptor, and the engine's next process, the store and the logs need some too."""

import resource

import msgspec

from ouzel.api.http.server.connections import MAX_CONNECTIONS, NUM_SPARE
from ouzel.config import LimitsConfig
from ouzel.options.invalid_option import InvalidOption

_RESERVED = 128
_MAX_FILES = 2**20  # where the system has no limit
MAX_WATCHING = 64  # connections to a port for metrics


def with_max_connections(limits: LimitsConfig, *, has_metrics_port: bool) -> LimitsConfig:
    """Takes as many descriptors as the system allows, and leaves as many connections as fit. Raises InvalidOption."""
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
        of_files = f"which the limit of {num_files} open files leaves (ulimit -n)"
        raise InvalidOption(
            f"--max-connections: must be <= {most}, {of_files}, given {limits.max_connections}"
        )
    return limits


def raise_limit() -> int:
    """Takes as many as the system allows, and returns how many these are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft >= most:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
