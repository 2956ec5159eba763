"""The parent's side: jobs go to a template, and errors say how they ended."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

from ouzel.limited_process.protocol import (
    BEGUN,
    DIED,
    DONE,
    NO_MEMORY,
    Job,
    Limits,
    Order,
    outcome_of,
    receive,
    start_thread,
    with_length,
)
from ouzel.observability import log_settings

logger = logging.getLogger(__name__)

# until the first job begins: the template is starting, on a machine that is busy
_START_TIMEOUT_S = 120.0
_GRACE_S = 5.0
_BEGIN_GRACES = 4  # until a later job begins
_END_TIMEOUT_S = 2.0
_TOO_LATE = frozenset(("SIGALRM", "SIGPROF", "SIGXCPU"))
_TOO_LARGE = frozenset(("SIGABRT",))  # native code that gets no memory aborts
# Nothing that a job does within its limits ends in these: the machine has no memory, no thread, or an operator killed.
_FROM_OUTSIDE = frozenset(("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "exit status 0"))
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",  # an arena takes 64 MiB of address space
    "RAYON_NUM_THREADS": "1",
    "RUST_BACKTRACE": "0",  # the panic's message is the job's result
    "TOKENIZERS_PARALLELISM": "false",
}


class JobEnded(Exception):
    """A job ended without a result."""


class TimeLimitExceeded(JobEnded):
    """The job took longer than it may."""

    def __init__(self, message: str, *, is_cpu_time: bool) -> None:
        super().__init__(message)
        self.is_cpu_time = is_cpu_time  # else it may have waited for a processor


class MemoryLimitExceeded(JobEnded):
    """The job asked for more memory than it may have."""


class JobFailed(JobEnded):
    """The function raised an exception, whose message this is."""


class ChildDied(JobEnded):
    """The job's process ended by a fault, as an overflow of the stack."""


class JobLost(ChildDied):
    """The job is not at fault: its process was killed or could not begin, or the template ended or was closed."""


class LimitedProcess:
    """Runs jobs, any number at a time, from any thread."""

    def __init__(
        self,
        factory: str,
        options: dict[str, object],
        limits: Limits,
        *,
        max_idle: int = 2,
        grace_s: float = _GRACE_S,
    ) -> None:
        """`factory` is "package.module:function"; called with `options` as keywords, it returns the function.

        Up to `max_idle` processes wait for their next jobs. A job is waited for `grace_s` beyond its time: by then the
        kernel has ended it, unless somebody has stopped its process.
        """
        self._grace_s = grace_s
        self._order = Order(factory, options, max_idle)
        self._limits = limits
        self._lock = threading.Lock()  # of what follows
        self._template: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None  # to the template
        self._is_closed = False
        self._has_begun = False  # a job of this template
        self._here: Job | None = None  # where processes cannot fork

    def start(self) -> None:
        """Starts the template and does not wait for it, so that the first job need not."""
        if hasattr(os, "fork"):
            with self._lock, suppress(JobLost):
                self._running()

    def run(self, job: bytes, limits: Limits | None = None) -> bytes:
        """Blocks until the result is there; `limits` are for this job alone. Raises JobEnded."""
        limits = limits or self._limits
        if not hasattr(os, "fork"):
            return self._run_here(job, limits)
        try:
            return self._run_there(job, limits)
        except ConnectionError:
            raise JobLost("the process that starts jobs ended") from None
        except OSError as error:  # no file or process more may be opened
            raise JobLost(f"the process that starts jobs cannot be reached: {error}") from None

    def close(self) -> None:
        """Ends the template and its jobs, with JobLost."""
        with self._lock:
            self._is_closed = True
            self._end_template()

    def _run_there(self, job: bytes, limits: Limits) -> bytes:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._submit(theirs)
            ours.settimeout(self._grace_s * _BEGIN_GRACES if self._has_begun else _START_TIMEOUT_S)
            try:
                return _result(*self._answer(ours, job, limits))
            except TimeoutError:
                with self._lock:
                    self._end_template()
                raise JobLost("the process that starts jobs does not answer") from None

    def _answer(self, connection: socket.socket, job: bytes, limits: Limits) -> tuple[int, bytes]:
        """Raises TimeoutError where the job does not begin."""
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it died already, and the template says how
            connection.sendall(with_length(limits.to_json()) + with_length(job))
        kind, payload = receive(connection)
        if kind != BEGUN:
            return kind, payload
        self._has_begun = True
        connection.settimeout(limits.wall_s + self._grace_s)
        try:
            return receive(connection)
        except TimeoutError:
            # The template process ends all jobs: only the job itself knows which process runs it.
            with self._lock:
                self._end_template()
            raise JobLost("the process of the job does not answer") from None

    def _submit(self, job_socket: socket.socket) -> None:
        """Hands a job's socket to the template, or to a new one where that has ended."""
        with self._lock:
            for _ in range(2):
                control = self._running()
                try:
                    socket.send_fds(control, [b"j"], [job_socket.fileno()])
                    return
                except ConnectionError:
                    self._end_template()
        raise JobLost("the process that starts jobs cannot be started")

    def _running(self) -> socket.socket:
        if self._is_closed:
            raise JobLost("the server is stopping")
        if self._control is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                logs = log_settings()
                arguments = f"{theirs.fileno()}, {logs.level!r}, {logs.log_format!r}"
                program = f"from ouzel.limited_process.template import run_template; run_template({arguments})"
                self._template = subprocess.Popen(
                    (
                        sys.executable,
                        "-P",
                        "-c",
                        program,
                    ),  # -P: nothing is imported from the working directory
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **_ENVIRONMENT},
                )
            with suppress(ConnectionError):  # it has ended already, which the job will find
                self._control.sendall(with_length(self._order.to_json()))
        return self._control

    def _end_template(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._template is not None:
            try:
                self._template.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._template.kill()  # jobs of its own end by their limits, at the latest
                self._template.wait()
        self._control = self._template = None
        self._has_begun = False

    def _run_here(self, job: bytes, limits: Limits) -> bytes:
        with self._lock:
            if self._here is None:
                logger.warning(
                    "processes cannot fork on this system: %s runs without limits",
                    self._order.factory,
                )
                self._here = self._order.function()
            function = self._here
        outcomes: list[tuple[int, bytes]] = []
        start_thread(lambda: outcomes.append(outcome_of(function, job)), limits.stack_bytes).join()
        return _result(*outcomes[0])


def _result(kind: int, payload: bytes) -> bytes:
    if kind == DONE:
        return payload
    if kind == NO_MEMORY:
        raise MemoryLimitExceeded("the job takes too much memory")
    if kind == DIED:
        raise _why(int(payload))
    raise JobFailed(payload.decode(errors="replace"))


def _why(exit_code: int) -> JobEnded:
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-exit_code, f"exit status {exit_code}")
    if name in _TOO_LATE:
        return TimeLimitExceeded("the job takes too long", is_cpu_time=name != "SIGALRM")
    if name in _TOO_LARGE:
        return MemoryLimitExceeded("the job takes too much memory")
    if name in _FROM_OUTSIDE:
        return JobLost(f"the process of the job ended with {name}")
    return ChildDied(f"the job's process ended with {name}")
