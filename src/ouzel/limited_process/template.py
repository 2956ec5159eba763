"""Implements the template and its forked jobs; unused on systems that cannot fork."""

import ctypes
import gc
import itertools
import logging
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ouzel.limited_process.protocol import (
    BEGUN,
    DIED,
    DONE,
    Job,
    Limits,
    Order,
    receive_payload,
    run_function,
    send,
    start_thread,
)
from ouzel.observability import LogFormat, configure_logging

logger = logging.getLogger(__name__)

_WATCH_S = 0.02
_LOW_PRIORITY = 10  # a tenth of the share of other processes
_MAX_JOBS = 200  # maximum of jobs in one process
_SLACK_BYTES = 16 * 2**20  # address space for a thread and for Python's report of the result


def run_template(fd: int, log_level: str, log_format: LogFormat) -> None:
    """Runs the template until its parent ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    configure_logging(log_level, log_format)
    control = socket.socket(fileno=fd)
    try:
        order = Order.from_json(receive_payload(control))
    except ConnectionError:
        os._exit(0)
    function = order.function()
    gc.collect()
    gc.freeze()  # otherwise its next run would write to, and so copy, the pages that jobs share
    _give_back_memory()
    writings = _divert_standard_error()
    configure_logging(log_level, log_format)
    _Template(control, function, writings, order.max_idle).serve()


def _divert_standard_error() -> int:
    """Diverts the standard error of native code into a pipe; returns its reading end.

    Panics and failed allocations write raw lines there, as often as clients like, while the log may
    promise JSON. Python's own standard error stays.
    """
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.dup2(writing, 2)
    os.close(writing)
    return reading


def _give_back_memory() -> None:
    """Frees the memory that only the build needed.

    Otherwise jobs could use it beyond their limits.
    """
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class _Template:
    """Starts and watches the processes of jobs."""

    def __init__(self, control: socket.socket, function: Job, writings: int, max_idle: int) -> None:
        """`writings` is the file with the standard error of jobs."""
        import resource  # noqa: PLC0415  # exists on every system that can fork

        self._control = control
        self._writings = writings
        self._function = function
        self._max_idle = max_idle
        self._jobs: dict[int, socket.socket] = {}  # sockets of running jobs by process id
        self._idle: list[int] = []
        # by process id: takes a job's socket, returns a byte at the job's end
        self._channels: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if _address_space_bytes() is None:
            logger.warning(
                "this system does not report the memory of a process: jobs have no memory limit"
            )

    def serve(self) -> NoReturn:
        awake, waker = socket.socketpair()
        awake.setblocking(False)
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler is needed for the wakeup
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._writings, selectors.EVENT_READ)
        self._selector.register(awake, selectors.EVENT_READ)
        while True:
            ready = [(key.fileobj, key.data) for key, _ in self._selector.select()]
            if (self._writings, None) in ready:
                self._log_writings()
            for pid in [data for _, data in ready if data is not None and data in self._channels]:
                self._hear(pid)
            if (awake, None) in ready:
                with suppress(BlockingIOError):
                    awake.recv(4096)
                self._bury()
            if (self._control, None) in ready:
                self._begin_job()

    def _log_writings(self) -> None:
        """Logs the jobs' standard error at DEBUG only, because it may quote requests."""
        with suppress(BlockingIOError):
            text = os.read(self._writings, 65536).decode(errors="replace")
            logger.debug("standard error of a job: %s", text.rstrip())

    def _begin_job(self) -> None:
        message, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        if not message:
            for pid in self._channels:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        connection = socket.socket(fileno=fds[0])
        try:
            pid = self._idle.pop() if self._idle else self._fork()
            self._jobs[pid] = connection
            socket.send_fds(self._channels[pid], [b"j"], [connection.fileno()])
        except ConnectionError:
            pass  # it has just died, which `_bury` will report
        except OSError as error:  # the job's owner sees the socket close
            logger.warning("a job cannot be started: %s", error)
            connection.close()

    def _fork(self) -> int:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._work(theirs)
        theirs.close()
        self._channels[pid] = ours
        self._selector.register(ours, selectors.EVENT_READ, pid)
        return pid

    def _hear(self, pid: int) -> None:
        """Reads the message of a process: its job is done, or it has ended."""
        try:
            said = self._channels[pid].recv(1)
        except ConnectionError:  # killed before it took the job that was sent
            said = b""
        if not said:
            self._drop(pid)
            return
        self._jobs.pop(pid).close()
        if len(self._idle) < self._max_idle:
            self._idle.append(pid)
        else:
            self._drop(pid)  # closing its channel ends it

    def _drop(self, pid: int) -> None:
        if pid in self._channels:
            self._selector.unregister(self._channels[pid])
            self._channels.pop(pid).close()
        if pid in self._idle:
            self._idle.remove(pid)

    def _bury(self) -> None:
        """Reports jobs whose processes ended.

        A parent that has the result has closed the socket.
        """
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                self._drop(pid)
                if pid in self._jobs:
                    with suppress(OSError), self._jobs.pop(pid) as connection:
                        connection.setblocking(False)
                        send(connection, DIED, str(os.waitstatus_to_exitcode(status)).encode())

    # The side of the processes that run jobs

    def _work(self, channel: socket.socket) -> NoReturn:
        """Runs job after job, until one fails or takes long."""
        try:
            signal.set_wakeup_fd(-1)
            self._selector.close()
            for other in (self._control, *self._jobs.values(), *self._channels.values()):
                other.close()
            for num_jobs in itertools.count(1):
                _, fds, _, _ = socket.recv_fds(channel, 1, 1)
                if not fds:
                    break
                with socket.socket(fileno=fds[0]) as connection:
                    if not self._run_job(connection) or num_jobs == _MAX_JOBS:
                        break
                channel.send(b"i")
        except ConnectionError:
            pass  # nobody waits for the result
        except (OSError, RuntimeError, MemoryError) as error:
            logger.warning("a job could not run: %s", error)
        finally:
            os._exit(0)

    def _run_job(self, connection: socket.socket) -> bool:
        """Runs one job; returns whether the process may run another."""
        send(connection, BEGUN)
        limits, job = Limits.from_json(receive_payload(connection)), receive_payload(connection)
        _keep(limits)
        kinds: list[int] = []
        thread = start_thread(
            lambda: kinds.append(self._answer(connection, job)), limits.stack_bytes
        )
        until_s = time.process_time() + limits.full_priority_s
        while thread.is_alive() and time.process_time() < until_s:
            thread.join(_WATCH_S)
        if thread.is_alive():
            _yield_processor(thread.native_id)
            thread.join()
            return False
        return kinds == [DONE]

    def _answer(self, connection: socket.socket, job: bytes) -> int:
        kind, payload = run_function(self._function, job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)  # no timer may interrupt the answer
        send(connection, kind, payload)
        return kind


def _keep(limits: Limits) -> None:
    """Sets the limits of this process."""
    import resource  # noqa: PLC0415

    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)  # the default action ends the process
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s or 0)
    _, most_file_bytes = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limits.max_file_bytes is None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.max_file_bytes, most_file_bytes))
    if (size := _address_space_bytes()) is not None:
        most = size + limits.stack_bytes + limits.memory_bytes + _SLACK_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _yield_processor(thread_id: int | None) -> None:
    """Leaves most of the processor to others; not every system has priorities of threads."""
    try:
        os.setpriority(os.PRIO_PROCESS, thread_id or 0, _LOW_PRIORITY)
    except OSError:
        os.setpriority(os.PRIO_PROCESS, 0, _LOW_PRIORITY)


def _address_space_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
