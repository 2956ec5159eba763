"""This package reads structural-tag formats, of which response formats and tools are made, into one grammar text."""

from ouzel.grammar.formats.reader import Format, add_reasoning, compile_format
from ouzel.grammar.formats.widened import widened_format

__all__ = ["Format", "add_reasoning", "compile_format", "widened_format"]
