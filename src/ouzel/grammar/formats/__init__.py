"""This package reads structural-tag formats, of which response formats and tools are made, into one grammar text."""

from ouzel.grammar.formats.reader import Format, compile_format, with_reasoning

__all__ = ["Format", "compile_format", "with_reasoning"]
