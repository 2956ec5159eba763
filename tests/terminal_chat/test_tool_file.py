"""Functions of a file become tools; a one-line error names a function that cannot."""

from pathlib import Path
from typing import Any  # the JSON of a schema

import pytest

from ouzel.terminal_chat.answer import ToolCall
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.tool_file import Tools, load_tools, run_call

MISFIT = "error: the arguments do not fit"
WEATHER = '''
from __future__ import annotations
import enum
from dataclasses import dataclass
from typing import Annotated, Literal, Optional
from os import getcwd


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclass
class Place:
    city: str
    country: str = "FR"


def weather(place: Place, unit: Unit = Unit.C, days: int = 1) -> dict[str, object]:
    """Tells the weather.

    Of any place
    on Earth.

    Args:
        place: where it is
        days (int): how many days ahead
    """
    return {"city": place.city, "unit": unit.value, "days": days}


def add(numbers: list[float], sign: Literal["+", "-"] = "+") -> float:
    """Adds.

    :param numbers: what is added
    """
    return sum(numbers)


async def shout(text: Annotated[str, "what to shout"], times: Optional[int] = None) -> str:
    return text.upper() * (times or 1)


def fail() -> None:
    raise ValueError("no \\x1b luck")


def nothing() -> None:
    pass


def name_of_a_file() -> str:
    return b"\\xff.txt".decode(errors="surrogateescape")


def _private(x):
    pass
'''


def load_source(source: str, directory: Path) -> Tools:
    path = directory / "tools.py"
    path.write_text(source)
    return load_tools(str(path))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return load_source(WEATHER, tmp_path_factory.mktemp("tools"))


def read_parameters(tools: Tools, name: str) -> dict[str, Any]:
    function = tools[name].on_the_wire()["function"]
    assert isinstance(function, dict)
    parameters: dict[str, Any] = function["parameters"]
    return parameters


def test_the_functions_of_the_file_are_the_tools(tools: Tools) -> None:
    assert list(tools) == ["weather", "add", "shout", "fail", "nothing", "name_of_a_file"]


def test_annotations_and_docstrings_become_the_schema(tools: Tools) -> None:
    parameters = read_parameters(tools, "weather")

    assert tools["weather"].description == "Tells the weather. Of any place on Earth."
    assert (parameters["type"], parameters["required"]) == ("object", ["place"])
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["place"]["description"] == "where it is"
    assert parameters["properties"]["days"] == {
        "type": "integer",
        "description": "how many days ahead",
        "default": 1,
    }
    assert parameters["$defs"]["Unit"]["enum"] == ["celsius", "fahrenheit"]
    assert parameters["$defs"]["Place"]["required"] == ["city"]


def test_descriptions_of_single_parameters_are_found(tools: Tools) -> None:
    assert read_parameters(tools, "add")["properties"]["numbers"]["description"] == "what is added"
    assert read_parameters(tools, "add")["properties"]["sign"]["enum"] == ["+", "-"]
    assert read_parameters(tools, "shout")["properties"]["text"]["description"] == "what to shout"
    assert tools["add"].description == "Adds."
    assert read_parameters(tools, "nothing") == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        (
            "weather",
            '{"place": {"city": "X"}, "unit": "fahrenheit"}',
            '{"city":"X","unit":"fahrenheit","days":1}',
        ),
        ("add", '{"numbers": [1, 2.5]}', "3.5"),
        ("shout", '{"text": "é", "times": 2}', "ÉÉ"),
        ("nothing", "", "null"),
        ("name_of_a_file", "{}", "?.txt"),
        ("fail", "{}", "error: ValueError: no \x1b luck"),
        (
            "weather",
            '{"place": {"city": 1}}',
            f"{MISFIT}: Expected `str`, got `int` - at `$.place.city`",
        ),
        ("weather", "{}", f"{MISFIT}: Object missing required field `place`"),
        ("nothing", '{"x": 1}', f"{MISFIT}: Object contains unknown field `x`"),
        ("add", '{"numbers": [1', f"{MISFIT}: Input data was truncated"),
        (
            "owl",
            "{}",
            "error: there is no tool 'owl'; there are "
            "weather, add, shout, fail, nothing, name_of_a_file",
        ),
    ],
)  # fmt: skip
def test_a_call_has_a_result_whatever_happens(
    tools: Tools, name: str, arguments: str, result: str
) -> None:
    assert run_call(tools, ToolCall("1", name, arguments)) == result


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("", "must define a function"),
        ("from os.path import join", "must define a function"),
        ("def f(x):\n  pass", "f: the parameter x must have an annotation"),
        ("def f(*x: int):\n  pass", "f: the parameter x must be a parameter with a name"),
        (
            "def f(x: int, /):\n  pass",
            "f: the parameter x must be a parameter with a name",
        ),
        ("class C:\n  pass\ndef f(x: C):\n  pass", "f: an annotation has no JSON schema"),
        (
            "def f(x: 'Nobody'):\n  pass",
            "f: its annotations cannot be read: name 'Nobody' is not defined",
        ),
        ("def grüße(x: int):\n  pass", "the name of a tool must be 1 to 64 ASCII"),
        ("def f(:\n", "line 1: invalid syntax"),
        ("x = 1\n1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
        ("import nobodys_module", "ModuleNotFoundError: No module named 'nobodys_module'"),
        ("raise ValueError('a\\x1b\\nb')", "ValueError: a␛␊b"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(source: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ChatError) as error:
        load_source(source, tmp_path)

    assert complaint in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "tools.py"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("absent.py", "there is no such file"),
        ("~nobody's/x.py", "there is no such file"),
        ("x" * 300, "there is no such file"),
        ("x.txt", "must be a Python file"),
    ],
)
def test_a_file_that_is_not_python_is_refused(name: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("def f(): pass")

    with pytest.raises(ChatError, match=complaint):
        load_tools(str(tmp_path / name))
