"""Defines the frames between a template and its parent, and runs functions for both.

The first frame on the control socket is the JSON of an `Order`, after 4 bytes of length,
big-endian. After that, each byte is a job and comes with the job's socket. The frames on a job's
socket have one byte for the kind, 4 bytes of length, and the payload. The job sends BEGUN, reads
its limits and its input (both without a kind), and sends its result. If the job dies, the template
sends DIED and the exit code. A hostile file may control the process of a job, so the parent reads
no process id from it.
"""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module

Job = Callable[[bytes], bytes]

BEGUN, DONE, FAILED, NO_MEMORY, DIED = b"BDFMX"

_MAX_MESSAGE_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one job; memory is address space beyond the template's own."""

    wall_s: float
    memory_bytes: int
    cpu_s: float | None = None  # CPU time of all threads; None: only `wall_s` limits
    stack_bytes: int = 16 * 2**20
    # Largest size of a file that the job writes; more is an OSError (EFBIG) in the job.
    max_file_bytes: int | None = None
    # CPU time after which the job leaves most of the processor to others
    full_priority_s: float = 0.1

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Limits":
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Order:
    """The function that the jobs run, as plain data for another process."""

    factory: str  # "package.module:function"
    options: dict[str, object]  # keyword arguments, plain data
    max_idle: int  # maximum of processes that wait for jobs

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Order":
        return cls(**json.loads(text))

    def function(self) -> Job:
        """Builds the function, which may take a while."""
        module_name, _, function_name = self.factory.partition(":")
        function: Job = getattr(import_module(module_name), function_name)(**self.options)
        return function


def receive(connection: socket.socket) -> tuple[int, bytes]:
    """Reads a frame.

    Returns its kind and payload. Raises ConnectionError at the end, and TimeoutError.
    """
    header = _receive_exactly(connection, 1)
    return header[0], receive_payload(connection)


def receive_payload(connection: socket.socket) -> bytes:
    return _receive_exactly(connection, int.from_bytes(_receive_exactly(connection, 4), "big"))


def _receive_exactly(connection: socket.socket, num_bytes: int) -> bytes:
    received = bytearray()
    while len(received) < num_bytes:
        chunk = connection.recv(min(num_bytes - len(received), 2**20))
        if not chunk:
            raise ConnectionError("the other end of the socket is closed")
        received += chunk
    return bytes(received)


def send(connection: socket.socket, kind: int, payload: bytes = b"") -> None:
    connection.sendall(bytes((kind,)) + prefix_length(payload))


def prefix_length(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def run_function(function: Job, job: bytes) -> tuple[int, bytes]:
    """Runs the job; returns kind and payload of the frame with its result."""
    try:
        return DONE, function(job)
    except MemoryError:
        return NO_MEMORY, b""
    except BaseException as error:  # panics of native code are not subclasses of Exception
        return FAILED, str(error)[:_MAX_MESSAGE_CHARS].encode(errors="replace")


def start_thread(work: Callable[[], object], stack_bytes: int) -> threading.Thread:
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread
    finally:
        threading.stack_size(before)
