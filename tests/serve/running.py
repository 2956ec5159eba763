"""`ouzel serve` as a user starts it: in a process of its own."""

import argparse
import re
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import httpx
import psutil

from tests.cores import share_of_cores
from tests.serve.forks import ENGINE_NAME, start_command

# signals that end a process because of a fault of its own
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}

unmarked_test = ""  # name of the running test, if it lacks the marker of tests that start servers


@dataclass
class RunningServer:
    process: subprocess.Popen[str]
    url: str  # ends with /v1
    curl: str  # the line it printed
    metrics_root: str = ""  # URL of the port for metrics alone
    announcement: str = ""  # its output up to the curl line

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    def engine_process(self) -> psutil.Process:
        [engine] = self.engine_processes()
        return engine

    def engine_processes(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if _is_engine(child)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        return process.name() == ENGINE_NAME or any(
            "run_child" in part for part in process.cmdline()
        )
    except psutil.NoSuchProcess:  # it has ended, and its parent may not have noticed yet
        return False


def start(
    *arguments: str,
    cache_dir: Path,
    environment: Mapping[str, str] | None = None,
    wrapper: Sequence[str] = (),
    is_executed: bool = False,
) -> subprocess.Popen[str]:
    """Starts a server, which keeps its data beside the cache if the arguments name no directory.

    The server is a fork of a process that has imported its modules, which saves a second of CPU
    (`forks.py`). With `is_executed`, or with a `wrapper` (a command that runs another command in
    its own process), an interpreter executes `python -m ouzel`.
    """
    assert not unmarked_test, f"{unmarked_test} starts a server: it needs `pytest.mark.serves`"
    arguments = (
        *("serve", "--port", "0", "--cache-dir", str(cache_dir)),
        *("--data-dir", str(cache_dir / "data"), *arguments),
    )
    if not wrapper and not is_executed:
        return start_command([*arguments], environment)
    command = [*wrapper, sys.executable, "-m", "ouzel", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def run_to_its_end(
    *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command of `ouzel serve` that starts no server, as a pull of OVMS's command line."""
    command = [sys.executable, "-m", "ouzel", "serve", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def send(curl: str, *, api_key: str = "", verify: ssl.SSLContext | bool = True) -> dict[str, Any]:
    """Sends the request of a printed curl line, without curl, and returns the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=["curl"])
    parser.add_argument("url")
    parser.add_argument("-H", action="append", dest="headers")
    parser.add_argument("-d", dest="data")
    parser.add_argument("--unix-socket")
    given = parser.parse_args(shlex.split(curl.replace("\\\n", " ").replace("$API_KEY", api_key)))
    transport = httpx.HTTPTransport(uds=given.unix_socket, verify=verify)
    with httpx.Client(transport=transport, timeout=None) as client:
        headers = dict(header.split(": ") for header in given.headers)
        answer: dict[str, Any] = client.post(given.url, content=given.data, headers=headers).json()
    return answer


def failure(*arguments: str, cache_dir: Path) -> str:
    """Returns the errors of a command that cannot start."""
    process = start(*arguments, cache_dir=cache_dir)
    _, errors = process.communicate()
    assert process.returncode != 0
    assert "Traceback" not in errors
    return errors


def _end(process: subprocess.Popen[str]) -> str:
    """Ends a server; returns a message with its errors if it had crashed, or nothing."""
    process.terminate()
    _, errors = process.communicate()
    return f"the server crashed: {process}\n{errors}" if -process.returncode in CRASHES else ""


@contextmanager
def serving(
    *arguments: str,
    cache_dir: Path,
    environment: Mapping[str, str] | None = None,
    wrapper: Sequence[str] = (),
    is_openvino: bool = True,
    is_executed: bool = False,
) -> Iterator[RunningServer]:
    """Waits for the announcement, and ends the server at the end.

    With `is_openvino`, Ouzel's own engine runs, with little memory.
    """
    size = ("--kv-cache-gib", "0.05", "--num-threads", str(share_of_cores())) if is_openvino else ()
    process = start(
        "--log-level",
        "error",
        *size,
        *arguments,
        cache_dir=cache_dir,
        environment=environment,
        wrapper=wrapper,
        is_executed=is_executed,
    )
    assert process.stdout is not None
    try:
        announcement = ""
        while "curl " not in announcement:
            line = process.stdout.readline()
            assert line, f"the server ended: {process.communicate()[1]}"
            announcement += line
        url = re.search(r"at (https?://\S+/v1)", announcement)
        curl = re.search(r"(curl .*)", announcement)
        assert url is not None
        assert curl is not None
        metrics = re.search(r"checks are at (\S+)", announcement)
        yield RunningServer(
            process, url[1], curl[1], "" if metrics is None else metrics[1], announcement
        )
    except BaseException as error:
        if crash := _end(process):
            error.add_note(crash)
        raise
    crash = _end(process)
    assert not crash, crash
