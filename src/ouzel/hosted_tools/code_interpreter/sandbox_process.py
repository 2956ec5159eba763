"""Starts the processes of one sandbox, and ends them.

The server holds: a connection to the driver inside; directories to measure the sandbox by; and
descriptors of two processes, of bubblewrap and of the first process inside. When this first process
ends, the kernel ends all other processes inside before it reports the end.
"""

import asyncio
import os
import platform
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from ouzel.hosted_tools.code_interpreter import bubblewrap, gvisor
from ouzel.hosted_tools.code_interpreter.cgroup import make_cgroup, remove_cgroup
from ouzel.hosted_tools.code_interpreter.frames import FrameFault, Header, read_frame
from ouzel.hosted_tools.code_interpreter.records import (
    WORK_DIRECTORY,
    SandboxPlan,
    SandboxUnavailable,
)
from ouzel.hosted_tools.code_interpreter.syscall_filter import make_filter
from ouzel.hosted_tools.code_interpreter.system_inside import INSIDE, list_texts

_START_S = 30.0
_DIRECTORIES = ("/proc", WORK_DIRECTORY, "/tmp", "/dev/shm")
_GVISOR_NICE = 10  # bubblewrap gets none: there the driver itself sets its priority
_MAX_COMPLAINT = 500
_LAUNCH = Path(__file__).parent / "launch.py"
_FREE_UID, _NOBODY = 2_000_000_000, 65534  # ids that belong to no person
_MAX_OPEN_FILES = 256  # limit of one process
_COUNTS_BY_NAMESPACE = (5, 14)  # older kernels count all processes of the user on the host
_REMEDY = (
    "User namespaces must be allowed for this server (sysctl user.max_user_namespaces > 0, "
    "kernel.unprivileged_userns_clone = 1 and kernel.apparmor_restrict_unprivileged_userns = 0 "
    "where they exist; in a container of Docker "
    "--security-opt seccomp=unconfined and --security-opt systempaths=unconfined)."
)


class _Started(msgspec.Struct, frozen=True, rename="kebab"):
    child_pid: int


_STARTED = msgspec.json.Decoder(_Started)


class SandboxProcess:
    def __init__(self, plan: SandboxPlan) -> None:
        self.plan = plan
        # /proc and the writable file systems inside; of gVisor only the /proc of bubblewrap
        self.directories: Sequence[int] = ()
        self.facts = Header("done")  # the first frame of the driver
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._bubblewrap: subprocess.Popen[bytes] | None = None
        self._init: int | None = None  # descriptor of the first process inside
        self._cgroup: Path | None = None

    @classmethod
    async def start(cls, plan: SandboxPlan, name: str) -> Self:
        """Starts a sandbox and its driver. Raises SandboxUnavailable."""
        sandbox = cls(plan)
        try:
            async with asyncio.timeout(_START_S):
                await sandbox._start(name)
        except SandboxUnavailable:
            await sandbox.end()
            raise
        except (OSError, EOFError, FrameFault, msgspec.MsgspecError, TimeoutError) as error:
            complaint = sandbox._read_complaint() or str(error) or type(error).__name__
            await sandbox.end()
            raise SandboxUnavailable(f"no sandbox can be made: {complaint}. {_REMEDY}") from error
        except BaseException:
            await sandbox.end()
            raise
        return sandbox

    @property
    def reader(self) -> asyncio.StreamReader:
        assert self._streams is not None
        return self._streams[0]

    @property
    def writer(self) -> asyncio.StreamWriter:
        assert self._streams is not None
        return self._streams[1]

    def kill(self) -> None:
        """Begins the end of all processes of the sandbox."""
        if self._init is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)

    async def end(self) -> None:
        """Ends all processes of the sandbox, waits for their end, and frees everything."""
        self.kill()
        if self._init is not None:
            await _wait_readable(self._init)
        if self._bubblewrap is not None:
            self._bubblewrap.kill()
            await asyncio.to_thread(self._bubblewrap.wait)
            self._close_complaints()
        if self._streams is not None:
            self.writer.close()
            with suppress(OSError):
                await self.writer.wait_closed()
        for fd in (*self.directories, *([] if self._init is None else [self._init])):
            os.close(fd)
        self.directories, self._init = (), None
        if self._cgroup is not None:
            await asyncio.to_thread(remove_cgroup, self._cgroup)
            self._cgroup = None

    async def _start(self, name: str) -> None:
        program = bubblewrap.find_bubblewrap()
        if self.plan.cgroup is not None:
            self._cgroup = make_cgroup(self.plan.cgroup, name, self.plan)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        told, telling = os.pipe()
        try:
            try:
                self._spawn(program, theirs.fileno(), telling)
            finally:
                theirs.close()
                os.close(telling)
            await self._meet(ours)
            started = _STARTED.decode(os.read(told, 4096))
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(told)
        self._init = os.pidfd_open(started.child_pid)
        if self.plan.tool == "gvisor":
            # gVisor hands out no directories. No code of the model has run yet.
            proc = f"/proc/{started.child_pid}/root/proc"
            self.directories = [os.open(proc, os.O_RDONLY | os.O_DIRECTORY)]
        else:
            # Code inside could open the pipe at the process of bubblewrap. (gVisor would end at a
            # message without a reader.)
            self._close_complaints()
        self._streams = await asyncio.open_unix_connection(sock=ours)
        self.facts, _ = await read_frame(self.reader)

    def _spawn(self, program: Path, control: int, telling: int) -> None:
        is_gvisor = self.plan.tool == "gvisor"
        with ExitStack() as stack:
            texts = {
                path: stack.enter_context(_open_text(text)) for path, text in list_texts().items()
            }
            passed = [control, telling, *texts.values()]
            if is_gvisor:
                bundle = gvisor.write_bundle(self.plan, self._driver_command(0))
                passed.append(stack.enter_context(_open_text(bundle)))
                command = gvisor.write_command(
                    program,
                    gvisor.find_runsc(),
                    self.plan,
                    texts=texts,
                    bundle_fd=passed[-1],
                    info_fd=telling,
                )
            else:
                seccomp = make_filter()
                seccomp_fd = None if seccomp is None else stack.enter_context(_open_text(seccomp))
                passed += [] if seccomp_fd is None else [seccomp_fd]
                command = bubblewrap.write_command(
                    program,
                    self.plan,
                    texts=texts,
                    seccomp_fd=seccomp_fd,
                    info_fd=telling,
                    command=self._driver_command(control),
                )
            settings = {
                "uid": _choose_uid(),
                "cgroup": None if self._cgroup is None else str(self._cgroup),
                "nice": _GVISOR_NICE if is_gvisor else 0,
            }
            # The parent of bubblewrap is the thread that starts it: a thread of a pool would end
            # the sandbox when it ends.
            self._bubblewrap = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCH), _encode(settings), *command],
                stdin=control if is_gvisor else subprocess.DEVNULL,  # runsc passes this one on only
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=passed,
                env={},
                start_new_session=True,
            )

    def _driver_command(self, control: int) -> list[str]:
        limits = self.plan.limits
        held = {
            "AS": limits.memory_bytes,
            "CORE": 0,
            "FSIZE": limits.file_bytes,
            "MEMLOCK": 0,
            "MSGQUEUE": 0,
            "NOFILE": _MAX_OPEN_FILES,
        }
        if self.plan.tool == "gvisor" or _read_kernel_version() >= _COUNTS_BY_NAMESPACE:
            held["NPROC"] = limits.max_processes + 2
        settings = {
            "limits": held,
            "output_bytes": limits.output_bytes,
            "directories": self._list_directories(),
        }
        python = self.plan.python or "python3"
        return [python, "-I", f"{INSIDE}/driver.py", str(control), _encode(settings)]

    def _list_directories(self) -> Sequence[str]:
        """Returns the directories that the driver hands out; gVisor's cannot leave its kernel."""
        return () if self.plan.tool == "gvisor" else _DIRECTORIES

    async def _meet(self, ours: socket.socket) -> None:
        """Waits for the driver, which sends directories to measure by."""
        await _wait_readable(ours.fileno())
        message, fds, _, _ = socket.recv_fds(ours, 1, len(_DIRECTORIES))
        self.directories = fds
        if not message:
            raise EOFError
        if len(fds) != len(self._list_directories()):
            raise FrameFault("the driver has sent no directories")

    def _close_complaints(self) -> None:
        assert self._bubblewrap is not None and self._bubblewrap.stderr is not None
        self._bubblewrap.stderr.close()

    def _read_complaint(self) -> str:
        """Returns the last line that bubblewrap or the driver has written about a failure."""
        if self._bubblewrap is None:
            return ""
        assert self._bubblewrap.stderr is not None
        if self._bubblewrap.stderr.closed:
            return ""
        fd = self._bubblewrap.stderr.fileno()
        os.set_blocking(fd, False)
        with suppress(BlockingIOError):
            text = os.read(fd, 65536).decode(errors="replace").strip()
            return " ".join(text.rpartition("\n")[2].split())[:_MAX_COMPLAINT].rstrip(".")
        return ""


def _encode(settings: Mapping[str, object]) -> str:
    return msgspec.json.encode(settings).decode()


@contextmanager
def _open_text(text: bytes) -> Iterator[int]:
    """Yields a file in memory, at its beginning."""
    fd = os.memfd_create("ouzel")
    try:
        os.write(fd, text)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _choose_uid() -> int | None:
    """Returns the user who runs the sandbox, if the server is root; None: the server's user.

    To the kernel, a process inside is the user who has started it. It must not be root.
    """
    if os.geteuid() != 0:
        return None
    rows = [
        list(map(int, row.split())) for row in Path("/proc/self/uid_map").read_text().splitlines()
    ]
    for uid in (_FREE_UID, _NOBODY):
        if any(first <= uid < first + count for first, _, count in rows):
            return uid
    return None  # the server itself is in a user namespace with one user, who is not root outside


def _read_kernel_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", platform.release())[:2]))


async def _wait_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(fd, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
