"""Makes functions whose jobs are commands: greet, spin, grow, abort."""

import ctypes
import os
import signal
from collections.abc import Callable
from tempfile import TemporaryFile


def create(greeting: str) -> Callable[[bytes], bytes]:
    """Returns a function that runs commands and counts the jobs of its process.

    The process must be a fork of the process that calls `create`.
    """
    parent = os.getpid()
    num_jobs = 0

    def run(job: bytes) -> bytes:
        nonlocal num_jobs
        num_jobs += 1
        match job.partition(b" "):
            case (b"greet", _, name):
                assert os.getppid() == parent
                return f"{greeting}, {name.decode()}: {num_jobs}".encode()
            case (b"repeat", _, number):
                return b"x" * int(number)
            case (b"spin", _, _):
                # Native code that does not come back.
                ctypes.pythonapi.PyRun_SimpleString(b"while True: pass")
            case (b"sleep", _, _):
                signal.pause()
            case (b"grow", _, _):
                held = []
                while True:
                    held.append(bytearray(2**20))
            case (b"write", _, text):
                os.write(2, text)
                return b""
            case (b"store", _, number):
                with TemporaryFile() as file:
                    file.write(bytes(int(number)))
                return b"stored"
            case (b"abort", _, _):
                os.abort()
            case (b"kill", _, number):
                os.kill(os.getpid(), int(number))
            case (b"exit", _, number):
                os._exit(int(number))
            case (b"crash", _, _):
                ctypes.string_at(0)
        raise ValueError(f"no such job: {job.decode()}")

    return run


def create_hostile() -> Callable[[bytes], bytes]:
    """Returns a function that escapes its limits.

    A job that is a number makes `os.getpid` return it; any other job removes the limit of time and
    hangs.
    """

    def run(job: bytes) -> bytes:
        if job.isdigit():
            os.getpid = lambda: int(job)
            return b""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pause()
        return b""

    return run


def create_broken() -> Callable[[bytes], bytes]:
    raise SystemExit(3)
