"""The Jinja dialect of Hugging Face chat templates: what a template may call, and what stops it.

Templates come from model directories, that is from strangers: they run in the immutable sandbox, with capped output.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NoReturn

import jinja2
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_RENDERED_CHARS = 32 * 2**20  # twice the default body limit; a loop gone wild stops here

# What a template's own code may raise on a request that it was not written for.
TEMPLATE_ERRORS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class TemplateRefusal(jinja2.TemplateError):
    """The template called `raise_exception`."""


class TemplateOutputTooLong(jinja2.TemplateError):
    """The output passed `MAX_RENDERED_CHARS`."""


def compile_template(source: str) -> jinja2.Template:
    """Raises `jinja2.TemplateSyntaxError`."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationBlock]
    )
    environment.filters |= {"tojson": to_json, "from_json": json.loads}
    environment.globals |= {"raise_exception": refuse, "strftime_now": strftime_now}
    return environment.from_string(source)


def render_template(template: jinja2.Template, variables: Mapping[str, object]) -> str:
    pieces: list[str] = []
    num_chars = 0
    for piece in template.generate(variables):
        num_chars += len(piece)
        if num_chars > MAX_RENDERED_CHARS:
            raise TemplateOutputTooLong(f"the rendered chat is longer than {MAX_RENDERED_CHARS} characters")
        pieces.append(piece)
    return "".join(pieces)


class GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's text for training; here its body is rendered."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`json.dumps` with the arguments that templates know from transformers; Jinja's own filter escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message: str) -> NoReturn:
    raise TemplateRefusal(message)


def strftime_now(date_format: str) -> str:
    return datetime.now().strftime(date_format)
