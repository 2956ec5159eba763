"""Counts how often a reader of `ouzel serve` changes files before the server's event loop begins.

    uv run python -m tools.house.walk [--quiet] [-- ARGUMENTS]

The command runs in this process, on the demo model, under `sys.setprofile`, and ends where the
event loop would begin. By then the options are read and checked, the address is taken, and the
model is found. `ouzel serve` gets ARGUMENTS.

Rules
1. Functions of the package count, in the thread that runs the command. Lambdas and comprehensions
   belong to the function in which they are written. Code that runs at import does not count.
2. A pair of caller and callee is read once, in the order of the first calls.
3. A stay is a stretch of reading in one file. A call into another file begins a stay there. So does
   the way back to the caller of the next call, if that caller is in another file.
4. A return is a stay in a file that had a stay before, so `stays = files + returns`.
"""

import argparse
import importlib
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import NamedTuple

from tools.house.hops import Call, Recorder
from tools.house.rooms import REPOSITORY


class Stay(NamedTuple):
    """A stay is a stretch of reading in one file."""

    path: str
    functions: tuple[str, ...]
    is_return: bool

    def __str__(self) -> str:
        mark = "<-" if self.is_return else "->"
        return f"{mark} {self.path}: {', '.join(self.functions)}"


class EventLoopBegins(BaseException):
    """Ends the command: the rest of the start belongs to the event loop."""


class _StartRecorder(Recorder):
    """Ends the recorded command at the first call of `asyncio.run` or `uvloop.run`."""

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "run":
            module = frame.f_globals.get("__name__")
            if module in {"asyncio.runners", "uvloop"}:
                raise EventLoopBegins
        if event == "call" and not _is_importing(frame):
            super().__call__(frame, event, argument)


def _is_importing(frame: FrameType | None) -> bool:
    """Tells whether the frame runs because a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def find_command() -> Callable[[Sequence[str]], int]:
    """Returns the function of the `ouzel` script, by its entry in pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["ouzel"].partition(":")
    command: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), name)
    return command


def record_start(arguments: Sequence[str]) -> list[Call]:
    """Runs `ouzel serve` with the arguments, up to its event loop, and returns the calls."""
    run_ouzel = find_command()
    recorder = _StartRecorder()
    recorder.is_on = True
    sys.setprofile(recorder)
    try:
        status = run_ouzel(["serve", *arguments])
    except EventLoopBegins:
        return recorder.calls
    finally:
        sys.setprofile(None)
    raise SystemExit(f"ouzel serve ended with status {status} before its event loop began")


def read_stays(calls: Iterable[Call]) -> list[Stay]:
    """Reads the calls in order (rules 2 to 4)."""
    stays: list[Stay] = []
    for call in calls:
        for function in call:
            if not stays or stays[-1].path != function.path:
                is_return = any(stay.path == function.path for stay in stays)
                stays.append(Stay(function.path, (function.name,), is_return))
            elif function.name not in stays[-1].functions:
                names = (*stays[-1].functions, function.name)
                stays[-1] = stays[-1]._replace(functions=names)
    return stays


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quiet", action="store_true", help="Only the counts.")
    parser.add_argument("arguments", nargs="*", help="The command line behind `ouzel serve`.")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("OUZEL_")]:
        del os.environ[name]
    warnings.simplefilter("ignore", RuntimeWarning)  # the coroutine of the server is never awaited
    stays = read_stays(record_start(options.arguments or ["--port", "0"]))
    num_returns = sum(stay.is_return for stay in stays)
    print(f"{len(stays)} stays, {len({stay.path for stay in stays})} files, {num_returns} returns")
    if not options.quiet:
        for number, stay in enumerate(stays, start=1):
            print(f"{number:4} {stay}")


if __name__ == "__main__":
    main()
