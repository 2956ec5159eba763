"""A file of Python functions becomes tools; they run in this process, when the user allows it."""

import asyncio
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import msgspec

from ouzel.terminal.harmless import harmless_line, whole_characters
from ouzel.terminal_chat.answer import ToolCall
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.tool_schema import Tool, tool_of
from ouzel.terminal_chat.user_file import user_path

Tools = Mapping[str, Tool]
_MODULE = "ouzel_chat_tools"


def load_tools(path_text: str) -> Tools:
    """Takes the functions that the file itself defines, but for those that begin with `_`. Raises ChatError."""
    shown = harmless_line(path_text)
    path = user_path(path_text)
    if not os.path.isfile(path):  # unlike the path's own method it takes names of any length
        raise ChatError(f"{shown}: there is no such file")
    module = _imported(path, shown)
    functions = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == _MODULE and not name.startswith("_")
    ]
    if not functions:
        raise ChatError(
            f"{shown}: must define a function whose name does not begin with an underscore"
        )
    try:
        return {tool.name: tool for tool in map(tool_of, functions)}
    except ChatError as error:
        raise ChatError(f"{shown}: {error}") from error


def _imported(path: Path, shown: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise ChatError(f"{shown}: must be a Python file, *.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # annotations that are text are looked up there
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # as `python FILE` does
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it is the user's program
        raise ChatError(f"{shown}: {_reason(error, path)}") from error
    return module


def _reason(error: BaseException, path: Path) -> str:
    """Returns what went wrong, with the line of the file."""
    if isinstance(error, SyntaxError):
        return harmless_line(f"line {error.lineno}: {error.msg}")
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path
    ]
    where = f"line {lines[-1]}: " if lines else ""
    return harmless_line(f"{where}{type(error).__name__}: {error}")


def run_call(tools: Tools, call: ToolCall) -> str:
    """Returns what the model is told: the result, or why there is none. KeyboardInterrupt passes."""
    return whole_characters(_result(tools, call))  # names of files may hold what no request could


def _result(tools: Tools, call: ToolCall) -> str:
    tool = tools.get(call.name)
    if tool is None:
        return f"error: there is no tool {call.name!r}; there are {', '.join(tools) or 'none'}"
    try:
        arguments = msgspec.json.decode(call.arguments or "{}", type=tool.arguments_type)
        values = {name: getattr(arguments, name) for name in arguments.__struct_fields__}
        result = tool.function(**values)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return (
            result
            if isinstance(result, str)
            else msgspec.json.encode(result, enc_hook=str).decode()
        )
    except msgspec.DecodeError as error:
        return f"error: the arguments do not fit: {error}"
    except (Exception, SystemExit) as error:  # it is the user's function
        return f"error: {type(error).__name__}: {error}"
