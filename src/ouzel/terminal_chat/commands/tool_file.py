"""Loads tools from a file of Python functions, and runs them in this process."""

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
from ouzel.terminal_chat.commands.tool_schema import Tool, make_tool
from ouzel.terminal_chat.user_file import user_path

Tools = Mapping[str, Tool]
_MODULE = "ouzel_chat_tools"


def load_tools(path_text: str) -> Tools:
    """Makes tools of the functions that the file defines, except for names that begin with `_`.

    Raises ChatError.
    """
    shown = harmless_line(path_text)
    path = user_path(path_text)
    if not os.path.isfile(path):  # Path.is_file raises an error for a name that is too long
        raise ChatError(f"{shown}: there is no such file")
    module = _import(path, shown)
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
        return {tool.name: tool for tool in map(make_tool, functions)}
    except ChatError as error:
        raise ChatError(f"{shown}: {error}") from error


def _import(path: Path, shown: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise ChatError(f"{shown}: must be a Python file, *.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # needed to resolve annotations that are strings
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # like `python FILE`
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # broad: the user's program may raise anything
        raise ChatError(f"{shown}: {_reason(error, path)}") from error
    return module


def _reason(error: BaseException, path: Path) -> str:
    """Describes an error of the user's file, with the line number."""
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
    """Runs a call and returns the text for the model: the result or an error.

    KeyboardInterrupt is not caught.
    """
    return whole_characters(_result(tools, call))  # a result may have bytes of file names


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
        if isinstance(result, str):
            return result
        return msgspec.json.encode(result, enc_hook=str).decode()
    except msgspec.DecodeError as error:
        return f"error: the arguments do not fit: {error}"
    except (Exception, SystemExit) as error:  # broad: the user's function may raise anything
        return f"error: {type(error).__name__}: {error}"
