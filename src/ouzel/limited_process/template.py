"""The template's side, and that of the jobs it forks. Nothing of this runs where processes cannot fork."""

import ctypes
import gc
import logging
import os
import selectors
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ouzel.limited_process.protocol import (
    BEGUN,
    DIED,
    Job,
    Limits,
    Order,
    outcome_of,
    receive_payload,
    send,
    start_thread,
)
from ouzel.observability import LogFormat, configure_logging

logger = logging.getLogger(__name__)

_FULL_PRIORITY_S = 0.1  # of CPU time
_WATCH_S = 0.02
_LOW_PRIORITY = 10  # a tenth of what others get
_SLACK_BYTES = 16 * 2**20  # of address space, for a thread and for what Python needs to report


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
    gc.freeze()  # else its next run would touch, and so copy, the pages that jobs share
    _give_back_memory()
    _Template(control, function).serve()


def _give_back_memory() -> None:
    """Gives back what was needed for building only: jobs would take it without its being seen."""
    with suppress(OSError, AttributeError):  # not the C library of GNU
        ctypes.CDLL(None).malloc_trim(0)


class _Template:
    def __init__(self, control: socket.socket, function: Job) -> None:
        import resource  # noqa: PLC0415  no system has it that cannot fork

        self._control = control
        self._function = function
        self._jobs: dict[int, socket.socket] = {}  # by process id
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if _address_space_bytes() is None:
            logger.warning("this system does not say how much memory a process has: jobs have no limit of memory")

    def serve(self) -> NoReturn:
        awake, waker = socket.socketpair()
        awake.setblocking(False)
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing wakes
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(awake, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if awake in ready:
                    with suppress(BlockingIOError):
                        awake.recv(4096)
                    self._bury()
                if self._control in ready:
                    self._begin_job()

    def _begin_job(self) -> None:
        message, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        if not message:
            for pid in self._jobs:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        connection = socket.socket(fileno=fds[0])
        try:
            pid = os.fork()
        except OSError as error:  # its parent sees the socket close
            logger.warning("a job cannot be started: %s", error)
            connection.close()
            return
        if pid == 0:
            self._run_job(connection)
        self._jobs[pid] = connection

    def _bury(self) -> None:
        """Tells of jobs that ended; who has the result already listens no more."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with suppress(OSError), self._jobs.pop(ended[0]) as connection:
                    connection.setblocking(False)
                    send(connection, DIED, str(os.waitstatus_to_exitcode(ended[1])).encode())

    # The job's side

    def _run_job(self, connection: socket.socket) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            self._control.close()
            for other in self._jobs.values():
                other.close()
            send(connection, BEGUN)
            limits, job = Limits.from_json(receive_payload(connection)), receive_payload(connection)
            _keep(limits)
            thread = start_thread(lambda: self._answer(connection, job), limits.stack_bytes)
            while time.process_time() < _FULL_PRIORITY_S:
                thread.join(_WATCH_S)
            _yield_processor(thread.native_id)
            thread.join()
        except ConnectionError:
            pass  # nobody waits for it any more
        except (OSError, RuntimeError) as error:
            logger.warning("a job could not run: %s", error)
        finally:
            os._exit(1)  # an answer ends the process before

    def _answer(self, connection: socket.socket, job: bytes) -> None:
        kind, payload = outcome_of(self._function, job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)  # no answer is cut
        with suppress(OSError):
            send(connection, kind, payload)
            os._exit(0)
        os._exit(1)


def _keep(limits: Limits) -> None:
    """Sets the limits of this process."""
    import resource  # noqa: PLC0415

    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)  # it ends the process
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s or 0)
    if (size := _address_space_bytes()) is not None:
        most = size + limits.stack_bytes + limits.memory_bytes + _SLACK_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _yield_processor(thread_id: int | None) -> None:
    """Leaves most of the processor to others. Threads have no priority of their own everywhere."""
    try:
        os.setpriority(os.PRIO_PROCESS, thread_id or 0, _LOW_PRIORITY)
    except OSError:
        os.setpriority(os.PRIO_PROCESS, 0, _LOW_PRIORITY)


def _address_space_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
