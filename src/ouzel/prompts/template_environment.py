"""Runs Hugging Face chat templates, a dialect of Jinja, within bounds.

Templates come from model directories and requests, so they are not trusted: they run in Jinja's
immutable sandbox. These are bounded:

- ranges (Jinja's own limit),
- the values that operators, filters and methods make (template_bounds.py),
- the output,
- the processor time, which every call and every round of a loop checks,
- lists that contain the same list many times: they are small until one call writes them out or
  compares them, so they are weighed before (template_weights.py).
"""

import json
import re
import time
from collections.abc import Mapping, Sized
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ouzel.prompts.marked_text import StandIns, bare, has_stand_ins
from ouzel.prompts.template_bounds import (
    FILTERS,
    bound_filter,
    check_arguments,
    percent_format_len,
)
from ouzel.prompts.template_marks import (
    BARE,
    COMPARING_TESTS,
    call_with_stand_ins,
    comparing_test,
    filter_with_stand_ins,
    prepare_output,
    prepare_percent_operands,
    read_back_operand,
    remove_stand_ins,
    replace_text,
    trim_text,
    write_stand_ins,
)
from ouzel.prompts.template_weights import (
    LIGHT_TYPES,
    list_if_iterator,
    weigh,
    weigh_arguments,
    weigh_filter,
)

MAX_RENDERED_CHARS = 32 * 2**20  # twice the default body limit; stops an endless loop
MAX_CPU_S = 10.0  # processor time of one rendering
_MAX_INTEGER_BITS = 2**16
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")

# Errors that a template's code may raise for a request that its author did not foresee.
TEMPLATE_ERRORS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)

# Errors of the Python code that Jinja generates, which Jinja does not notice itself: a break
# without a loop, a thousand brackets.
_COMPILER_ERRORS = (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError)

# The end of the rendering in this context, as a value of time.thread_time().
_ends_at = ContextVar[float]("ends_at")


class TemplateRefusal(jinja2.TemplateError):
    """Tells that the template refuses the messages with `raise_exception`."""


class TemplateOutputTooLong(jinja2.TemplateError):
    """The output, or an intermediate value, is longer than `MAX_RENDERED_CHARS`."""


class TemplateTooSlow(jinja2.TemplateError):
    """The rendering took more processor time than `MAX_CPU_S`."""


# No template for real use causes these errors.
PASSED_LIMITS = (TemplateOutputTooLong, TemplateTooSlow)


def compile_template(source: str, stand_ins: StandIns | None = None) -> jinja2.Template:
    """Compiles a template, with stand-ins in its own texts if given (see marked_text.py).

    Raises `jinja2.TemplateSyntaxError`.
    """
    environment = BoundedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", GenerationBlock],
    )
    environment.stand_ins = stand_ins
    environment.filters |= {
        "tojson": to_json,
        "from_json": from_json,
        _ROUND: check_time,
        _JOINED: join_bounded,
    }
    environment.filters |= {
        BARE: read_back_operand,
        "replace": replace_text,
        "trim": trim_text,
        _WEIGHED: _weighed_operand,
    }
    environment.globals |= {"raise_exception": refuse, "strftime_now": strftime_now}
    del environment.globals["lipsum"]  # makes text of any length
    for name in FILTERS:
        environment.filters[name] = bound_filter(name, environment.filters[name], _check_num_chars)
    environment.finalize = _weighed
    tests: Mapping[str, Any] = environment.tests  # Any: Jinja has no type for them
    if stand_ins is not None:
        environment.finalize = _prepare_weighed
        for name in environment.filters.keys() - _OWN_FILTERS:
            environment.filters[name] = filter_with_stand_ins(name, environment.filters[name])
        environment.tests |= {name: comparing_test(tests[name]) for name in COMPARING_TESTS}
    # Our own filters weigh their values themselves or pass them on.
    for name in environment.filters.keys() - _OWN_FILTERS:
        environment.filters[name] = weigh_filter(name, environment.filters[name], _check_num_chars)
    environment.tests |= {
        name: weigh_arguments(tests[name], _check_num_chars) for name in COMPARING_TESTS
    }
    try:
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError:
        raise
    except _COMPILER_ERRORS as error:
        raise jinja2.TemplateSyntaxError(
            error.msg if isinstance(error, SyntaxError) else str(error), 1
        ) from error


def render_template(
    template: jinja2.Template, variables: Mapping[str, object], *, max_cpu_s: float = MAX_CPU_S
) -> list[str]:
    """Renders the template and returns the text in pieces."""
    pieces: list[str] = []
    num_chars = 0
    token = _ends_at.set(time.thread_time() + max_cpu_s)
    try:
        for piece in template.generate(variables):
            num_chars += len(piece)
            _check_num_chars(num_chars)
            pieces.append(piece)
    finally:
        _ends_at.reset(token)
    return pieces


# The checks are filters, because Jinja's compiler can call filters from generated code.
_ROUND, _JOINED, _WEIGHED = "ouzel_round", "ouzel_joined", "ouzel_weighed"
_OWN_FILTERS = {BARE, _ROUND, _JOINED, _WEIGHED, "from_json"}


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("+", "*", "**", "%"))
    stand_ins: StandIns | None = None

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        _check_operands(operator, left, right)
        if operator == "%" and isinstance(left, str) and self.stand_ins is not None:
            left, right = prepare_percent_operands(left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: object, /, *args: object, **kwargs: object) -> object:
        check_time(context, None)
        # A method may write its arguments out, or compare them with a list's items.
        if not isinstance(obj, Macro):
            args = tuple(map(list_if_iterator, args))
            for each in (*args, *kwargs.values()):
                _weighed(each)
            if isinstance(owner := getattr(obj, "__self__", None), list | tuple):
                _weighed(owner)
        args = check_arguments(obj, args, kwargs, _check_num_chars)
        if self.stand_ins is not None and callable(obj):
            obj, arguments, named = call_with_stand_ins(obj, args, kwargs)
            return super().call(context, obj, *arguments, **named)
        return super().call(context, obj, *args, **kwargs)

    def getitem(self, obj: object, argument: object) -> object:
        if isinstance(argument, tuple):
            _weighed(argument)  # looking a key up hashes it
        return super().getitem(obj, argument)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        """Adds the stand-ins and the checks to the syntax tree before Jinja compiles it to code."""
        for compare in source.find_all(nodes.Compare):
            compare.expr = _filtered(compare.expr, _WEIGHED)
            for operand in compare.ops:
                operand.expr = _filtered(operand.expr, _WEIGHED)
        for pair in source.find_all(nodes.Pair):
            pair.key = _filtered(pair.key, _WEIGHED)
        if self.stand_ins is not None:
            write_stand_ins(source, self.stand_ins)
        for loop in source.find_all(nodes.For):
            loop.body.insert(0, nodes.ExprStmt(_filtered(nodes.Const(None), _ROUND)))
        for concat in source.find_all(nodes.Concat):
            concat.nodes = [_filtered(nodes.List(concat.nodes), _JOINED)]
        return super()._generate(source, name, filename, defer_init)


def _filtered(node: nodes.Expr, filter_name: str) -> nodes.Filter:
    return nodes.Filter(node, filter_name, [], [], None, None)


@pass_context
def check_time(context: Context, value: object) -> str:
    if time.thread_time() > _ends_at.get():
        raise TemplateTooSlow("the rendering took too long")
    return ""


@pass_context
def join_bounded(context: Context, values: list[object]) -> str:
    texts = [str(prepare_output(_weighed(value))) for value in values]
    _check_num_chars(sum(map(len, texts)))
    return str_join(texts)


def _check_operands(operator: str, left: object, right: object) -> None:
    match operator, left, right:
        case "**", int(), int():
            _check_bits(left.bit_length() * abs(right))
        case "*", int(), int():
            _check_bits(left.bit_length() + right.bit_length())
        case "*", Sized(), int():
            _check_num_chars(len(left) * right)
        case "*", int(), Sized():
            _check_num_chars(left * len(right))
        case "+", Sized(), Sized():
            _check_num_chars(len(left) + len(right))
        case "%", str(), _:
            _weighed(right)
            _check_num_chars(
                percent_format_len(left, *(right if isinstance(right, tuple) else [right]))
            )
        case _:
            pass


def _weighed(value: object) -> object:
    """Returns the value, or raises TemplateOutputTooLong if its text would be too long."""
    if type(value) not in LIGHT_TYPES:
        weigh(value, _check_num_chars)
    return value


def _weighed_operand(value: object) -> object:
    return value if type(value) in LIGHT_TYPES else _weighed(list_if_iterator(value))


def _prepare_weighed(value: object) -> object:
    return prepare_output(_weighed(value))


def _check_bits(num_bits: int) -> None:
    if num_bits > _MAX_INTEGER_BITS:
        raise TemplateOutputTooLong(
            f"the chat template made an integer of more than {_MAX_INTEGER_BITS} bits"
        )


def _check_num_chars(num_chars: int) -> None:
    if num_chars > MAX_RENDERED_CHARS:
        raise TemplateOutputTooLong(
            f"the rendered chat is longer than {MAX_RENDERED_CHARS} characters"
        )


class GenerationBlock(Extension):
    """Renders the body of `{% generation %}…{% endgeneration %}`, which marks the assistant's text
    for training.
    """

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Writes JSON like the filter `tojson` of transformers; Jinja's own filter escapes HTML."""
    text = json.dumps(
        value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys
    )
    return _NOT_ASCII.sub(_json_escaped, text) if ensure_ascii else text


def _json_escaped(found: re.Match[str]) -> str:
    return found[0] if has_stand_ins(found[0]) else json.dumps(found[0])[1:-1]


def from_json(text: str) -> object:
    return remove_stand_ins(json.loads(bare(text)))


def refuse(message: str) -> NoReturn:
    raise TemplateRefusal(bare(message))


def strftime_now(date_format: str) -> str:
    return datetime.now().strftime(bare(date_format))
