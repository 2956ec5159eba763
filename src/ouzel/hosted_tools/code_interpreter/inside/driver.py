"""Runs calls inside a sandbox. It is copied there: it imports the standard library only.

1.  The server writes one request at a time, and reads frames until the frame `done`. While a call
    runs it may also send `interrupt` and `kill`.
2.  A frame is two lengths of four bytes, then a header in JSON, then bytes.
3.  The driver runs no code of the model itself. Python code runs in a session, a process of its
    own, whose messages may be forged by this code; a command runs in a shell.
4.  Between two calls all processes are stopped, so that a container computes during calls only.
5.  The server takes no word of the driver on trust either: code inside may try to take it over.
"""

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any  # Any: JSON

INSIDE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, INSIDE)  # -I leaves it out

if TYPE_CHECKING:
    from ouzel.hosted_tools.code_interpreter.inside import work_files
else:
    import work_files
WORK = work_files.WORK

SESSION = os.path.join(INSIDE, "session.py")
_PR_SET_DUMPABLE = 4
_PIECE = 1 << 20
_MAX_LINE = 16 << 20  # longest message of a session
_MAX_IMAGES = 8
_MAX_IMAGE = 2 << 20
_TICK_S = 0.05
_REPEAT_S = 0.5  # between two interrupts of the same call
_Header = dict[str, Any]


class Gone(Exception):
    """The server has closed the connection."""


class Control:
    """The connection to the server."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def send(self, header: _Header, payload: bytes = b"") -> None:
        text = json.dumps(header).encode()
        self.connection.sendall(struct.pack("!II", len(text), len(payload)) + text + payload)

    def receive(self) -> tuple[_Header, bytes]:
        header_len, payload_len = struct.unpack("!II", self._read(8))
        return json.loads(self._read(header_len)), self._read(payload_len)

    def _read(self, size: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            piece = self.connection.recv(min(size - len(pieces), _PIECE))
            if not piece:
                raise Gone
            pieces += piece
        return bytes(pieces)


class Output:
    """Passes output on to the server, up to a limit; counts the rest."""

    def __init__(self, control: Control, kind: str, limit: int) -> None:
        self._control = control
        self._kind = kind
        self._num_left = limit
        self.num_dropped = 0

    def add(self, piece: bytes) -> None:
        kept = piece[: self._num_left]
        if kept:
            self._control.send({"kind": self._kind}, kept)
        self._num_left -= len(kept)
        self.num_dropped += len(piece) - len(kept)


class Session:
    """The process that keeps the variables of Python between calls."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self.connection = ours
        self.reading = reading
        self.buffer = bytearray()
        with theirs, open(writing, "wb"):
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-u", SESSION, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=WORK,
            )

    def read_lines(self) -> list[bytes] | None:
        """Returns the whole lines that have arrived; None if the session has ended."""
        try:
            piece = self.connection.recv(_PIECE)
        except ConnectionError:
            piece = b""
        self.buffer += piece
        if not piece or len(self.buffer) > _MAX_LINE:
            return None
        *lines, rest = self.buffer.split(b"\n")
        self.buffer = bytearray(rest)
        return [bytes(line) for line in lines]

    def close(self) -> None:
        self.connection.close()
        os.close(self.reading)
        self.process.kill()
        self.process.wait()


class Driver:
    def __init__(self, control: Control, output_bytes: int) -> None:
        self._control = control
        self._output_bytes = output_bytes
        self._session: Session | None = None
        self._num_calls = 0

    def serve(self) -> None:
        while True:
            header, payload = self._control.receive()
            if header["op"] in ("interrupt", "kill"):
                continue  # it came after the end of its call
            try:
                done = self._run(header, payload)
            except OSError as error:
                done = {"error": error.strerror or "an error"}
            except ValueError as error:
                done = {"error": str(error)}
            self._control.send({"kind": "done", **done})

    def _run(self, header: _Header, payload: bytes) -> _Header:
        operation = header["op"]
        if operation == "python":
            return self._run_call(lambda: self._run_python(payload))
        if operation == "command":
            return self._run_call(lambda: self._run_command(payload, header["limit"]))
        if operation == "list":
            return {"files": work_files.list_files()}
        if operation == "read":
            piece = work_files.read_file(header["path"], header["start"], header["size"])
            self._control.send({"kind": "data"}, piece)
            return {}
        if operation == "write":
            return work_files.write_file(header["path"], payload, is_first=header["first"])
        assert operation == "delete"
        return work_files.delete_file(header["path"])

    def _run_call(self, call: Callable[[], _Header]) -> _Header:
        self._reap(os.WEXITED | os.WNOHANG)
        before = {path: tuple(facts) for path, *facts in work_files.list_files()}
        signal_all(signal.SIGCONT)
        try:
            done = self._run_twice(call)
        finally:
            signal_all(signal.SIGSTOP)
        listed = work_files.list_files()
        done["files"] = listed
        done["changed"] = [path for path, *facts in listed if before.get(path) != tuple(facts)]
        return done

    def _run_twice(self, call: Callable[[], _Header]) -> _Header:
        """Runs a call; if earlier code has used up all processes, ends them and tries again."""
        try:
            return call()
        except BlockingIOError:
            signal_all(signal.SIGKILL)
            if self._session is not None:
                self._session.close()
                self._session = None
            self._reap(os.WEXITED)
            return {**call(), "lost": True}

    def _reap(self, options: int) -> None:
        """Removes orphans that have ended: gVisor gives them to the driver."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitid(os.P_ALL, 0, options | os.WNOWAIT)) is not None:
                if self._session is not None and found.si_pid == self._session.process.pid:
                    self._session.process.poll()  # the next call reports its end
                else:
                    os.waitpid(found.si_pid, 0)

    # Python

    def _run_python(self, code: bytes) -> _Header:
        session = self._session
        if session is None:
            session = self._session = Session()
        output = Output(self._control, "output", self._output_bytes)
        done = None
        self._num_calls += 1
        try:
            request = json.dumps([self._num_calls, code.decode()])
            session.connection.sendall(request.encode() + b"\n")
            done = self._follow(session, output)
        except (ConnectionError, LookupError, ValueError, TypeError, RuntimeError):
            pass  # the code has closed the connection, or written to it
        drain(session.reading, output)
        if done is None:
            session.close()
            self._session = None
            done = {"error": f"Python ended ({describe_end(session.process)})", "lost": True}
        return {**done, "dropped": output.num_dropped}

    def _follow(self, session: Session, output: Output) -> _Header | None:
        """Passes on the messages of a session; returns the last, or None if the session ended."""
        num_images = 0
        waited: list[Any] = [self._control.connection, session.connection, session.reading]
        is_interrupted = False
        while True:
            ready, _, _ = select.select(waited, [], [], _REPEAT_S if is_interrupted else None)
            if self._control.connection in ready:
                is_interrupted = self._obey(session.process, signal.SIGINT)
                if not is_interrupted:
                    return None
            elif not ready:  # the code was not running yet, or has caught the first one
                os.killpg(session.process.pid, signal.SIGINT)
            if session.reading in ready:
                piece = read_ready(session.reading)
                output.add(piece)
                if not piece:  # the code has closed its standard output
                    waited.remove(session.reading)
            if session.connection not in ready:
                continue
            lines = session.read_lines()
            if lines is None:
                return None
            for line in lines:
                message = read_message(line, self._num_calls)
                if isinstance(message, bytes) and num_images < _MAX_IMAGES:
                    num_images += 1
                    self._control.send({"kind": "image"}, message)
                elif isinstance(message, dict):
                    return message

    def _obey(self, process: "subprocess.Popen[bytes]", interrupt: int) -> bool:
        """Reads a request that arrives during a call; returns False if the call must end.

        An interrupt is a signal for the process and its children.
        """
        header, _ = self._control.receive()
        if header["op"] == "interrupt":
            os.killpg(process.pid, interrupt)
            return True
        signal_all(signal.SIGKILL)
        return False

    # Commands

    def _run_command(self, command: bytes, limit: int) -> _Header:
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        process = subprocess.Popen(
            [shell, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=WORK,
        )
        assert process.stdout is not None and process.stderr is not None
        outputs = {
            process.stdout.fileno(): Output(self._control, "stdout", limit),
            process.stderr.fileno(): Output(self._control, "stderr", limit),
        }
        for reading in outputs:
            os.set_blocking(reading, False)
        is_killed = not self._wait(process, dict(outputs))
        if is_killed and self._session is not None:
            self._session.close()
            self._session = None
        for reading, output in outputs.items():
            drain(reading, output)
        process.stdout.close()
        process.stderr.close()
        process.wait()
        return {
            "exit": None if is_killed else process.returncode,
            "lost": is_killed,
            "dropped": sum(output.num_dropped for output in outputs.values()),
        }

    def _wait(self, process: "subprocess.Popen[bytes]", outputs: dict[int, Output]) -> bool:
        """Waits for the end of a shell; returns False if the server has ended it.

        Processes in the background may hold its outputs open for longer.
        """
        control: Any = self._control.connection  # select takes both
        while process.poll() is None:
            ready, _, _ = select.select([control, *outputs], [], [], _TICK_S)
            for reading in [each for each in ready if each in outputs]:
                piece = read_ready(reading)
                outputs[reading].add(piece)
                if not piece:
                    del outputs[reading]
            if control in ready and not self._obey(process, signal.SIGKILL):
                return False
        return True


def read_message(line: bytes, num_call: int) -> "bytes | _Header | None":
    """Returns an image, or the end of a call; None for a message about an earlier call.

    Raises an error for any other message.
    """
    message = json.loads(line)
    if message["call"] != num_call:
        return None
    if "image" in message:
        image = base64.b64decode(message["image"])
        return image if len(image) <= _MAX_IMAGE else b""
    error = message["error"]
    return {"error": None if error is None else str(error)[:1000], "lost": False}


def signal_all(number: int) -> None:
    """Signals all other processes of the sandbox at the same time, except its first."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def read_ready(fd: int) -> bytes:
    try:
        return os.read(fd, _PIECE)
    except BlockingIOError:
        return b""


def drain(fd: int, output: Output) -> None:
    """Passes on the output that has been written already, up to a bound."""
    for _ in range(64):
        piece = read_ready(fd)
        if not piece:
            return
        output.add(piece)


def describe_end(process: "subprocess.Popen[bytes]") -> str:
    code = process.wait()
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def set_limits(limits: dict[str, int]) -> list[str]:
    """Sets the limits of this process and its children; returns the names of the limits."""
    held = []
    for name, value in limits.items():
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
            held.append(name)
        except (AttributeError, ValueError, OSError):
            pass
    return held


def main() -> None:
    number = int(sys.argv[1])
    connection = socket.socket(fileno=os.dup(number))  # no other program gets the copy
    if number > 0:
        os.close(number)  # standard input is replaced below
    settings = json.loads(sys.argv[2])
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)  # other processes cannot read or trace this one
    held = set_limits(settings["limits"])
    os.nice(10)
    empty = os.open(os.devnull, os.O_RDWR)
    watched = [os.open(path, os.O_RDONLY) for path in settings["directories"]]
    socket.send_fds(connection, [b"r"], watched)
    for number in (0, 1, 2):
        os.dup2(empty, number)
    for fd in (empty, *watched):
        os.close(fd)
    control = Control(connection)
    control.send({"kind": "done", "held": held, "python": sys.version.split()[0]})
    with contextlib.suppress(Gone, ConnectionError):
        Driver(control, settings["output_bytes"]).serve()


if __name__ == "__main__":
    main()
