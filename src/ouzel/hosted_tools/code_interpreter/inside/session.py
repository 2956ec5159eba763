"""Runs Python code like a notebook: names stay, and the last expression is shown.

This program runs inside a sandbox; it imports the standard library only. The code of the model
shares its process, so nothing here protects anything.
"""

import ast
import base64
import builtins
import io
import json
import linecache
import os
import signal
import socket
import sys
import traceback
import types
import warnings
from types import TracebackType
from typing import Any  # Any: values of the code that runs

_MAX_SHOWN = 100_000  # characters of the value of an expression
# The module of the code: pickle finds its functions and classes there by their names.
_module = types.ModuleType("__main__")
_namespace: dict[str, Any] = vars(_module)
_namespace["__builtins__"] = builtins


def run(code: str, number: int) -> str | None:
    """Runs a cell; returns a line about its error, or None."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), _namespace)
        if isinstance(last, ast.Expr):
            show(eval(compile(ast.Expression(last.value), name, "eval"), _namespace))
    except SystemExit as error:
        return f"SystemExit: {error.code}"
    except KeyboardInterrupt:
        sys.stderr.write("KeyboardInterrupt\n")
        return "the call was interrupted after its time"
    except BaseException as error:
        traceback.print_exception(type(error), error, skip_own(error.__traceback__))
        return traceback.format_exception_only(type(error), error)[-1].strip()
    return None


def skip_own(trace: TracebackType | None) -> TracebackType | None:
    """Returns the part of a traceback that begins in the code of the model."""
    found = trace
    while found is not None and not found.tb_frame.f_code.co_filename.startswith("<cell"):
        found = found.tb_next
    return found


def show(value: Any) -> None:
    if value is None:
        return
    _namespace["_"] = value
    picture = getattr(value, "_repr_png_", None)
    image = picture() if callable(picture) and not isinstance(value, type) else None
    if isinstance(image, bytes):
        images.append(image)
        return
    text = repr(value)
    sys.stdout.write((text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…") + "\n")


def take_figures() -> None:
    """Draws the open figures of matplotlib and closes them."""
    plots: Any = sys.modules.get("matplotlib.pyplot")
    if plots is None:
        return
    for number in plots.get_fignums():
        picture = io.BytesIO()
        plots.figure(number).savefig(picture, format="png", bbox_inches="tight")
        images.append(picture.getvalue())
    plots.close("all")


images: list[bytes] = []


def run_cell(code: str, number: int) -> str | None:
    """Runs a cell and draws its figures. An interrupt may come at any time."""
    error: str | None = None
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        error = run(code, number)
        take_figures()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as fault:
        # Broad: the code may have broken anything that this program uses.
        error = error or traceback.format_exception_only(type(fault), fault)[-1].strip()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return error


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.dont_write_bytecode = True
    sys.path.insert(0, "")
    sys.argv = [""]
    sys.modules["__main__"] = _module
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
    own_pid = os.getpid()
    for number, line in enumerate(connection.makefile("rb"), start=1):
        images.clear()
        call, code = json.loads(line)
        error = run_cell(code, number)
        if os.getpid() != own_pid:
            os._exit(0)  # a fork of this process that has come to the end of the code
        answer: dict[str, Any]
        for image in images:
            answer = {"call": call, "image": base64.b64encode(image).decode()}
            connection.sendall(json.dumps(answer).encode() + b"\n")
        answer = {"call": call, "error": error}
        connection.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
