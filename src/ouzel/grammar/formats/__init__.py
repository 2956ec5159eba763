"""Compiles structural-tag formats, the form of response formats and tools, to one grammar text."""

from ouzel.grammar.formats.reader import Format, compile_format, with_reasoning
from ouzel.grammar.formats.widened import widen_format

__all__ = ["Format", "compile_format", "widen_format", "with_reasoning"]
