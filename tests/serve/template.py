"""Forks commands of `ouzel`, and the engines of these commands: see `forks.py`.

Each forked server has a template of its own for its engines, so that the server is their parent.
"""

import asyncio
import atexit
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn  # Any: the arguments of an engine's process

# The modules of a server and of its engine, and the packages that they import late.
import ouzel.api.http.server.socket_protocol
import ouzel.backends.openvino.encoder_loader
import ouzel.backends.openvino.language_model
import ouzel.backends.openvino.library
import ouzel.backends.openvino.loader
import ouzel.engine.core
import ouzel.engine.pooling_engine
import ouzel.serve.command
import ouzel.serve.engine_factories
import ouzel.serve.http_frontend
import ouzel.store.sql_store
from ouzel.cli.app import main
from ouzel.engine_client import links
from ouzel.engine_client.child import run_child
from tests.serve.fork_messages import (
    connection_pair,
    receive_order,
    receive_pid,
    send_order,
    send_pid,
)
from tests.serve.forks import ENGINE_NAME, adopting_orphans

_PR_SET_NAME = 15


def run_template(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Forks a process for each order; returns in the fork, with its order and its descriptors.

    The parent of a fork ends at once, so that the process which sent the order becomes the parent.
    """
    while (received := receive_order(connection)) is not None:
        order, fds = received
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                os.close(writing)
                connection.close()
                return order, fds
            os.write(writing, str(pid).encode())
            os._exit(0)
        for fd in (writing, *fds):
            os.close(fd)
        os.waitpid(between, 0)
        send_pid(connection, int(os.read(reading, 20)))
        os.close(reading)
    os._exit(0)


def run_command(order: dict[str, Any], fds: list[int]) -> int:
    """Runs a command of `ouzel` as `python -m ouzel` does."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    sys.path[0] = order["directory"]
    sys.argv = [ouzel.__file__.replace("__init__", "__main__"), *order["arguments"]]
    if sys.argv[1:2] == ["serve"]:
        start_engine_template()
    return main()


def start_engine_template() -> None:
    """Makes the engines of this process forks of a template, which is a fork of this process."""
    ours, theirs = connection_pair()
    if os.fork() == 0:
        ours.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _, fds = run_template(theirs)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, ENGINE_NAME.encode(), 0, 0, 0)
        run_child(*fds)
        end_process(0)
    theirs.close()
    names = vars(links)
    execute = names["create_subprocess_exec"]

    async def fork_engine(*command: str, pass_fds: tuple[int, int], stdin: int) -> Any:
        if command[0] != sys.executable:  # another interpreter, with other packages
            return await execute(*command, pass_fds=pass_fds, stdin=stdin)
        with adopting_orphans():
            send_order(ours, {}, list(pass_fds))
            return ForkedEngine(receive_pid(ours))

    names["create_subprocess_exec"] = fork_engine


class ForkedEngine:
    """The process of an engine, as `asyncio.subprocess.Process` shows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status = os.waitpid(self.pid, 0)
        self._exit_code.set_result(os.waitstatus_to_exitcode(status))

    async def wait(self) -> int:
        return await asyncio.shield(self._exit_code)

    def kill(self) -> None:
        if self._exit_code.done():
            raise ProcessLookupError
        os.kill(self.pid, signal.SIGKILL)


def end_process(status: int) -> NoReturn:
    """Ends this process as Python does, but does not take apart the modules of the template.

    That would copy their memory and take as long as the start of a server.
    """
    wait_for_threads: Callable[[], None] = vars(threading)["_shutdown"]
    wait_for_threads()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # a collection in a fork need not look at the modules
    end_process(run_command(*run_template(socket.socket(fileno=int(sys.argv[1])))))
