"""Compiles structural-tag formats, the form of response formats and tools, to one grammar text."""

from ouzel.grammar.formats.reader import Format, add_reasoning, compile_format
from ouzel.grammar.formats.widening import widen_format

__all__ = ["Format", "add_reasoning", "compile_format", "widen_format"]
