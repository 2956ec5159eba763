"""The parent's side: sends jobs to a template and reports their results."""

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
    prefix_length,
    receive,
    run_function,
    start_thread,
)
from ouzel.observability import log_settings

logger = logging.getLogger(__name__)

# Time until the first job begins: the template starts, perhaps on a busy machine.
_START_TIMEOUT_S = 120.0
_GRACE_S = 5.0
_BEGIN_GRACES = 4  # grace periods until a later job begins
_END_TIMEOUT_S = 2.0
_TOO_LATE = frozenset(("SIGALRM", "SIGPROF", "SIGXCPU"))
_TOO_LARGE = frozenset(("SIGABRT",))  # native code without memory aborts
# A job within its limits never ends in these ways: the machine lacked memory or threads, or an
# operator killed the process.
_FROM_OUTSIDE = frozenset(("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "exit status 0"))
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",  # an arena takes 64 MiB of address space
    "OPENBLAS_NUM_THREADS": "1",  # numpy would start threads in the template
    "RAYON_NUM_THREADS": "1",
    "RUST_BACKTRACE": "0",  # the panic's message is the job's result
    "TOKENIZERS_PARALLELISM": "false",
}


class JobEnded(Exception):
    """Raised when a job ended without a result."""


class TimeLimitExceeded(JobEnded):
    """Raised when a job exceeds its time."""

    def __init__(self, message: str, *, is_cpu_time: bool) -> None:
        super().__init__(message)
        self.is_cpu_time = is_cpu_time  # otherwise the job may have waited for a processor


class MemoryLimitExceeded(JobEnded):
    """Raised when a job exceeds its memory."""


class JobFailed(JobEnded):
    """Raised when the function raised an exception; has the message of that exception."""


class ChildDied(JobEnded):
    """Raised when a fault ended the job's process, for example a stack overflow."""


class JobLost(ChildDied):
    """The job is not at fault: its process was killed or could not begin, or the template ended."""


class LimitedProcess:
    """Runs jobs in child processes with limits on time and memory; thread-safe."""

    def __init__(
        self,
        factory: str,
        options: dict[str, object],
        limits: Limits,
        *,
        max_idle: int = 2,
        grace_s: float = _GRACE_S,
    ) -> None:
        """`factory` is "package.module:function"; called with `options` as keywords, it returns the
        function.

        Up to `max_idle` processes wait for further jobs. The parent waits for a job `grace_s`
        beyond its time: by then the kernel has ended it, unless its process was stopped.
        """
        self._grace_s = grace_s
        self._order = Order(factory, options, max_idle)
        self._limits = limits
        self._lock = threading.Lock()  # guards the attributes below
        self._template: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None  # socket to the template
        self._is_closed = False
        self._has_begun = False  # a job of this template has begun
        self._here: Job | None = None  # the function itself, on systems that cannot fork

    def start(self) -> None:
        """Starts the template without waiting, so that the first job is faster."""
        if hasattr(os, "fork"):
            with self._lock, suppress(JobLost):
                self._running()

    def run(self, job: bytes, limits: Limits | None = None) -> bytes:
        """Runs a job and returns its result; `limits` are for this job only. Raises JobEnded."""
        limits = limits or self._limits
        if not hasattr(os, "fork"):
            return self._run_here(job, limits)
        try:
            return self._run_there(job, limits)
        except ConnectionError:
            raise JobLost("the process that starts jobs ended") from None
        except OSError as error:  # no further file or process can be opened
            raise JobLost(f"the process that starts jobs cannot be reached: {error}") from None

    def close(self) -> None:
        """Ends the template and its jobs, which raise JobLost."""
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
        """Returns kind and payload of the answer. Raises TimeoutError if the job does not begin."""
        # The job may have died already; the template then reports how.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(prefix_length(limits.to_json()) + prefix_length(job))
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
        """Sends a job's socket to the template, or to a new one if the template has ended."""
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
                program = (
                    "from ouzel.limited_process.template import run_template; "
                    f"run_template({arguments})"
                )
                self._template = subprocess.Popen(
                    # -P: no import from the working directory
                    (sys.executable, "-P", "-c", program),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **_ENVIRONMENT},
                )
            with suppress(ConnectionError):  # it has already ended; the job will notice
                self._control.sendall(prefix_length(self._order.to_json()))
        return self._control

    def _end_template(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._template is not None:
            try:
                self._template.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._template.kill()  # its jobs end by their limits at the latest
                self._template.wait()
        self._control = self._template = None
        self._has_begun = False

    def _run_here(self, job: bytes, limits: Limits) -> bytes:
        with self._lock:
            if self._here is None:
                logger.warning(
                    "this system cannot fork processes: %s runs without limits",
                    self._order.factory,
                )
                self._here = self._order.function()
            function = self._here
        outcomes: list[tuple[int, bytes]] = []
        start_thread(
            lambda: outcomes.append(run_function(function, job)), limits.stack_bytes
        ).join()
        return _result(*outcomes[0])


def _result(kind: int, payload: bytes) -> bytes:
    if kind == DONE:
        return payload
    if kind == NO_MEMORY:
        raise MemoryLimitExceeded("the job takes too much memory")
    if kind == DIED:
        raise _explain_death(int(payload))
    raise JobFailed(payload.decode(errors="replace"))


def _explain_death(exit_code: int) -> JobEnded:
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-exit_code, f"exit status {exit_code}")
    if name in _TOO_LATE:
        return TimeLimitExceeded("the job takes too long", is_cpu_time=name != "SIGALRM")
    if name in _TOO_LARGE:
        return MemoryLimitExceeded("the job takes too much memory")
    if name in _FROM_OUTSIDE:
        return JobLost(f"the process of the job ended with {name}")
    return ChildDied(f"the job's process ended with {name}")
