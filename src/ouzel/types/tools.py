"""Defines tools, and the marks of the text in which a model calls them."""

from typing import Literal

import msgspec

# Models write the text of a custom tool as the one argument of a function, under this name.
CUSTOM_ARGUMENT = "input"


class TextGrammar(msgspec.Struct, frozen=True):
    """A client's grammar for a text."""

    syntax: Literal["lark", "regex"]
    definition: str


class FunctionTool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None  # JSON schema of the arguments; None: no arguments
    strict: bool = False  # the arguments must obey the schema
    # the client sees a text instead of arguments: the value of the one argument
    is_custom: bool = False
    text_grammar: TextGrammar | None = None  # grammar of that text
    # The client did not write the schema: another server did, whose tool this server runs.
    is_foreign: bool = False


class ParameterMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks around the parameters of a call, for models that write them as bare text."""

    style: str  # name of these marks in a format
    begin: str
    name_end: str
    value_begin: str = ""  # may follow after space
    end: str
    has_newlines: bool = False  # a line break at either end of a value belongs to the marks
