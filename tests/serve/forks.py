"""Starts `ouzel` commands as forks of a process that has imported their modules.

A start by `python -m ouzel` takes a second of CPU for imports, in the server and in its engine. The
fork is a process of its own like the other: it has its own arguments, environment, directory,
standard streams, signals and exit status, and the test is its parent. `template.py` is the program
of the process that forks.
"""

import atexit
import ctypes
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # the arguments of a private function of the standard library

from tests.serve.fork_messages import connection_pair, receive_pid, send_order

ENGINE_NAME = "ouzel-engine"  # psutil shows this name for the process of a forked engine
# The modules of the template read none of these variables when they are imported. Packages that do,
# as huggingface_hub, are not among its modules.
FREE_VARIABLES = re.compile(
    r"(OUZEL|HF|HUGGINGFACE|OPENAI|ANTHROPIC|CLAUDE|PIP|UV|XDG)(_.*)?|HOME|PATH|\w+_proxy",
    re.IGNORECASE,
)
_CHANGED_BY_PYTEST = "PYTEST_CURRENT_TEST"
_COVERAGE = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
_PR_SET_CHILD_SUBREAPER = 36

# The parameters of the private method that executes a program, behind `self`.
_execute: Callable[..., None] = getattr(subprocess.Popen, "_execute_child")  # noqa: B009
_EXECUTION = [*inspect.signature(_execute).parameters][1:]
_STREAMS = {"p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"}
_NEEDED = {"args", "cwd", "env"} | _STREAMS


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Makes this process the parent of descendants whose parents end."""
    _set_subreaper(True)
    try:
        yield
    finally:
        _set_subreaper(False)


def _set_subreaper(is_on: bool) -> None:
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0) != 0:
        raise OSError("the kernel refuses to make this process the parent of orphans")


class Template:
    """The process that forks, for the whole run of this process."""

    def __init__(self) -> None:
        self.environment = _read_at_import(os.environ)
        self._connection, theirs = connection_pair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.serve.template", str(theirs.fileno())],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # no terminal, as for the commands
                pass_fds=[theirs.fileno()],
            )
        self._lock = threading.Lock()
        atexit.register(self.close)

    def fork(
        self, arguments: list[str], environment: Mapping[str, str], directory: str, fds: list[int]
    ) -> int:
        """Starts a command with these standard streams; returns the number of its process."""
        order = {"arguments": arguments, "environment": dict(environment), "directory": directory}
        with self._lock, adopting_orphans():
            send_order(self._connection, order, fds)
            return receive_pid(self._connection)

    def close(self) -> None:
        self._connection.close()
        self._process.communicate()


_template: Template | None = None


def can_fork(environment: Mapping[str, str]) -> bool:
    """Tells whether a fork behaves like a new interpreter.

    It does on Linux, without coverage, in the same environment: modules read some variables when
    they are imported, so only `FREE_VARIABLES` may differ. Another Python may lack a parameter.
    """
    global _template  # noqa: PLW0603  one process for the whole run
    is_possible = sys.platform == "linux" and _NEEDED.issubset(_EXECUTION)
    if not is_possible or any(name in environment for name in _COVERAGE):
        return False
    if _template is None:
        _template = Template()
    return _read_at_import(environment) == _template.environment


def _read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name != _CHANGED_BY_PYTEST and not FREE_VARIABLES.fullmatch(name)
    }


class Fork(subprocess.Popen[Any]):
    """A command of `ouzel` in a fork of the template; `args` begins with `python -m ouzel`."""

    def _execute_child(self, *arguments: Any) -> None:
        """Forks in the place of the execution of a program: the class has no public way."""
        given = dict(zip(_EXECUTION, arguments, strict=True))
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        fds = [number if fd == -1 else fd for number, fd in enumerate(streams)]
        assert _template is not None
        environment = os.environ if given["env"] is None else given["env"]
        directory = str(given["cwd"] or os.getcwd())
        self.pid = _template.fork(given["args"][3:], environment, directory, fds)
        self._child_created = True
        # The original closes this process's copies of the child's ends of pipes too, and no stream
        # that the caller has opened.
        pipes = zip(streams, (given["p2cwrite"], given["c2pread"], given["errread"]), strict=True)
        for child_end, own_end in pipes:
            if child_end != -1 and own_end != -1:
                os.close(child_end)
        if (devnull := vars(self).get("_devnull")) is not None:
            os.close(devnull)
        self._closed_child_pipe_fds = True


def start_command(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    stdin: int | None = None,
    directory: Path | None = None,
    is_text: bool = True,
) -> subprocess.Popen[Any]:
    """Starts `ouzel` with these arguments: as a fork if possible, else by an interpreter."""
    is_fork = can_fork(os.environ if environment is None else environment)
    start = Fork if is_fork else subprocess.Popen[Any]
    return start(
        [sys.executable, "-m", "ouzel", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=is_text,
        env=environment,
        cwd=directory,
    )


def run_command(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    text: str = "",
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `ouzel` with `text` as its standard input, and waits for its end."""
    with start_command(
        arguments, environment, stdin=subprocess.PIPE, directory=directory
    ) as process:
        output, errors = process.communicate(text)
    assert "Traceback" not in errors, errors
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
