"""The frames between a template and its parent, and how either of them runs a function.

The first frame on the control socket is an `Order`'s JSON, by 4 bytes length, big-endian. After it each byte is a job,
and comes with the job's socket. On that go frames of one byte for the kind, 4 bytes length, and the payload: the job
sends BEGUN, takes its limits and its input, both without a kind, and sends how it ended; where it could not, the
template sends DIED and the exit code. A job's process may be in the hands of a hostile file: the parent takes nothing
from it as the name of a process.
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
    cpu_s: float | None = None  # of all threads; None: `wall_s` is limit enough
    stack_bytes: int = 16 * 2**20
    full_priority_s: float = 0.1  # of CPU time; then the job leaves most of the processor to others

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Limits":
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Order:
    """Names the function that jobs run."""

    factory: str  # "package.module:function"
    options: dict[str, object]  # its keywords, plain data
    max_idle: int  # processes that wait for jobs

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
    """Returns the kind and the payload of a frame. Raises ConnectionError at the end, and TimeoutError."""
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
    connection.sendall(bytes((kind,)) + with_length(payload))


def with_length(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def outcome_of(function: Job, job: bytes) -> tuple[int, bytes]:
    """Returns the kind and the payload of the frame that says how the job ended."""
    try:
        return DONE, function(job)
    except MemoryError:
        return NO_MEMORY, b""
    except BaseException as error:  # panics of native code are no Exceptions
        return FAILED, str(error)[:_MAX_MESSAGE_CHARS].encode(errors="replace")


def start_thread(work: Callable[[], object], stack_bytes: int) -> threading.Thread:
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread
    finally:
        threading.stack_size(before)
