"""Starts a server for the time of a client, and stops it afterwards."""

import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from ouzel.client.base import ApiFailure
from ouzel.launch.client import LaunchError, Target
from ouzel.launch.flags import LaunchFlags
from ouzel.launch.target import find_target

_LOG = "server.log"
_POLL_S = 0.2
_STOP_TIMEOUT_S = 60.0  # longer than a server waits for running requests


@contextmanager
def served_target(flags: LaunchFlags, directory: Path) -> Generator[Target, None, None]:
    """Serves `flags.serve` at the address of `flags.url`, and yields the target when it is ready.

    Raises LaunchError if another server answers there or the server ends.
    """
    if _find(flags) is not None:
        raise LaunchError(f"--serve: a server answers at {flags.url} already; leave out --serve")
    log = directory / _LOG
    for ending in (signal.SIGTERM, signal.SIGHUP):  # SIGHUP: the terminal is closed
        signal.signal(ending, lambda number, _frame: sys.exit(128 + number))
    sys.stderr.write(f"ouzel: starting ouzel serve {flags.serve}; its log is {log}\n")
    process = _start([flags.serve, *_address_options(flags)], log)
    try:
        yield _wait_until_ready(process, flags, log)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "ouzel", "serve", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the client
            )
    except OSError as error:
        raise LaunchError(f"{log}: cannot be written: {error.strerror}") from error


def _address_options(flags: LaunchFlags) -> list[str]:
    parts = urlsplit(flags.url if "://" in flags.url else f"http://{flags.url}")
    if parts.scheme != "http" or parts.hostname is None:
        raise LaunchError(f"--serve: --url must be like http://127.0.0.1:8000, given {flags.url!r}")
    options = ["--host", parts.hostname, "--port", str(parts.port or 80)]
    return [*options, "--served-model-name", flags.model] if flags.model else options


def _wait_until_ready(process: subprocess.Popen[bytes], flags: LaunchFlags, log: Path) -> Target:
    while process.poll() is None:
        target = _find(flags)
        if target is not None:
            return target
        time.sleep(_POLL_S)
    lines = log.read_text(errors="replace").splitlines() or ["it said nothing"]
    raise LaunchError(f"ouzel serve {flags.serve} ended with {process.returncode}: {lines[-1]}")


def _find(flags: LaunchFlags) -> Target | None:
    """Returns None if no server answers, or if it is not ready."""
    try:
        return find_target(flags.url, model=flags.model, api_key=flags.api_key)
    except ApiFailure as failure:
        if failure.http_status in (0, HTTPStatus.SERVICE_UNAVAILABLE):
            return None
        raise
