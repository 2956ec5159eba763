"""Tools, and the shape of the text by which a model calls one."""

from typing import Literal

import msgspec

# models write a custom tool's text as the one argument of a function, under this name
CUSTOM_ARGUMENT = "input"


class TextGrammar(msgspec.Struct, frozen=True):
    """A client's own grammar says what a text may be."""

    syntax: Literal["lark", "regex"]
    definition: str


class FunctionTool(msgspec.Struct, frozen=True):
    """The model may call this function."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None  # JSON schema of the arguments; None: it takes none
    strict: bool = False  # the arguments must obey the schema
    # the client sees a text instead of arguments: the one that they consist of
    is_custom: bool = False
    text_grammar: TextGrammar | None = None  # of that text


class ParameterMarks(msgspec.Struct, frozen=True, kw_only=True):
    """What a model writes around the parameters of a call, where these stand one after another as bare text."""

    style: str  # the name of these marks in a format
    begin: str
    name_end: str
    value_begin: str = ""  # there may be space before it
    end: str
    has_newlines: bool = False  # one at either end of a value belongs to the marks
