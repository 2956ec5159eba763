"""Defines the records of containers, and the errors of the code interpreter."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ouzel.errors import InvalidRequest, OuzelError, Overloaded

WORK_DIRECTORY = "/mnt/data"  # OpenAI's name for it
MAX_LISTED_FILES = 1000
_OWN_THREADS = 4  # bubblewrap and the driver have these
# gVisor without any code takes 50 MiB and 60 threads; each process inside takes 3 to 5 threads.
_GVISOR_BYTES = 96 * 2**20
_GVISOR_THREADS, _GVISOR_THREADS_EACH = 128, 8


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one container."""

    memory_bytes: int
    file_bytes: int  # size of the work directory; /tmp has half as much, /dev/shm a quarter
    max_processes: int  # threads count too
    cpu_s: float  # processor time of one call, by all processes together
    call_timeout_s: float
    output_bytes: int  # longest output of one call; the rest is left out
    max_inodes: int = 100_000  # files and directories, which take memory of the kernel
    max_sockets: int = 256  # a full one takes up to half a MiB of the kernel's memory


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """Describes a sandbox, so that each kind of sandbox can turn it into a command."""

    root: Path | None  # a directory with a Linux system; None: parts of the host, read only
    python: str  # path of the interpreter inside; empty: found by name
    shown_paths: tuple[Path, ...]  # further directories of the host, read only at the same place
    limits: SandboxLimits
    cgroup: Path | None  # a cgroup of version 2 that belongs to the server
    tool: Literal["bubblewrap", "gvisor"] = "bubblewrap"  # the tool that makes the sandbox

    @property
    def most_memory_bytes(self) -> int:
        """Returns the most memory that the processes of the sandbox may take together.

        The kernel of gVisor is one of them, and has the files in its memory.
        """
        limits = self.limits
        if self.tool == "bubblewrap":
            return limits.memory_bytes
        return limits.memory_bytes + 2 * limits.file_bytes + _GVISOR_BYTES

    @property
    def most_threads(self) -> int:
        """Returns the most threads of the machine that the sandbox may have.

        gVisor runs each process inside as a process of the machine with a few threads.
        """
        if self.tool == "bubblewrap":
            return self.limits.max_processes + _OWN_THREADS
        return _GVISOR_THREADS + _GVISOR_THREADS_EACH * self.limits.max_processes


@dataclass(frozen=True, slots=True)
class ContainerFile:
    id: str
    path: str  # relative to the work directory
    size_bytes: int
    created_at: float  # unix seconds
    is_users: bool  # a client has put it there, not the code


@dataclass(frozen=True, slots=True)
class PythonResult:
    logs: str  # standard output and error, the value of the last expression, the traceback
    images: tuple[bytes, ...]  # PNG
    files: tuple[ContainerFile, ...]  # new and changed files of the work directory
    error: str | None  # a line if the code raised an exception, was interrupted or ended Python
    is_state_lost: bool  # the variables of earlier calls are gone
    is_interrupted: bool = False  # the call took too long, or was cancelled


@dataclass(frozen=True, slots=True)
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int | None  # None: the command was ended after its time
    files: tuple[ContainerFile, ...] = ()  # new and changed files of the work directory
    is_state_lost: bool = False  # the variables of Python are gone


class SandboxUnavailable(OuzelError):
    """No sandbox can be made here; the message tells the remedy."""

    status = 503
    type = "server_error"
    code = "sandbox_unavailable"


class ContainerNotFound(InvalidRequest):
    status = 404
    code = "container_not_found"

    def __init__(self, container_id: str) -> None:
        super().__init__(
            f"no container {container_id!r}: it does not exist, or it has expired",
            param="container_id",
        )


class ContainerFileNotFound(InvalidRequest):
    status = 404
    code = "file_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"the container has no file {name!r}", param="file_id")


class ContainerEnded(OuzelError):
    """The container ended during a call: it broke a limit, or its processes ended."""

    status = 409
    type = "invalid_request_error"
    code = "container_ended"


class FileRefused(InvalidRequest):
    """The container cannot take a file: its name is wrong, or there is no space left."""


class TooManyContainers(Overloaded):
    code = "too_many_containers"
