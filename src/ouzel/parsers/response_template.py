"""Reads `response_template` of `tokenizer_config.json`: the authors' description of a model's
answers.

The format is from transformers 5 (docs: "Response Parsing"): fields of the message, each with the
marks around it, the kind of its content, and the way a call is made from the content. A description
that cannot be applied to a stream exactly raises `UnreadableTemplate` with the reason. It is not
checked that required fields are present, because the answer is already on its way then.
"""

import re
from dataclasses import dataclass
from itertools import permutations

import msgspec

from ouzel.parsers.mark_patterns import Gap, Mark, PatternError, read_patterns

REASONING_FIELDS = ("thinking", "reasoning_content", "reasoning")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_MEMBER = re.compile(r"\{content\.(\w+)\}")


class UnreadableTemplate(ValueError):
    """A response_template that is invalid or cannot be applied to a stream.

    The message names the part at fault.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """Content or reasoning: the text in regions between marks."""

    opens: tuple[Mark, ...] = ()  # empty: all text outside the other fields
    closes: tuple[Mark, ...] = ()  # empty: the region goes to the end of the output
    strips: bool = True
    separator: str = "\n\n"  # between two regions


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsField:
    """Tool calls: each region contains one call, or a list of calls, in JSON."""

    opens: tuple[Mark, ...]
    closes: tuple[Mark, ...]
    # key of the name in a call's object; "" if the mark has the name and the region the arguments
    name_key: str = ""
    arguments_key: str = ""
    is_list: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseTemplate:
    anchors: tuple[str, ...]  # texts in the prompt, each followed by an answer
    content: TextField
    reasoning: TextField | None = None
    calls: CallsField | None = None


class _Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    open: str | list[str] | None = None
    open_pattern: str | None = None
    close: str | list[str] | None = None
    close_pattern: str | None = None
    content: str = "text"
    content_args: dict[str, object] = {}
    repeats: bool = False
    join: str | None = None
    optional: bool = True
    transform: object = None
    transform_each: bool = False


class _Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fields: dict[str, _Field]
    version: int = 1
    defaults: dict[str, object] = {}
    start_anchor: str | list[str] | None = None
    start_anchor_pattern: str | None = None


def read_response_template(value: object) -> ResponseTemplate:
    """Reads a description from its JSON value. Raises UnreadableTemplate."""
    try:
        description = msgspec.convert(value, _Template)
    except msgspec.ValidationError as error:
        raise UnreadableTemplate(str(error)) from error
    if description.version != 1:
        raise UnreadableTemplate(f"version must be 1, given {description.version}")
    anchors = _read_marks(
        "start_anchor", description.start_anchor, description.start_anchor_pattern
    )
    if not anchors or any(anchor.rest for anchor in anchors):
        raise UnreadableTemplate("start_anchor must be a text, or texts")
    content, reasoning, calls = TextField(), None, None
    for name, field in description.fields.items():
        if name == "content":
            content = _read_text_field(name, field)
        elif name in REASONING_FIELDS and reasoning is None:
            reasoning = _read_text_field(name, field)
        elif name == "tool_calls":
            calls = _read_calls_field(name, field)
        else:
            raise UnreadableTemplate(f"field {name!r} is not a field of an answer")
    if reasoning and not (reasoning.opens and reasoning.closes):
        raise UnreadableTemplate(
            "the reasoning needs a mark that opens it and a mark that closes it"
        )
    template = ResponseTemplate(
        anchors=tuple(anchor.text for anchor in anchors),
        content=content,
        reasoning=reasoning,
        calls=calls,
    )
    _check_marks(template)
    return template


def _check_marks(template: ResponseTemplate) -> None:
    """Raises UnreadableTemplate if marks cannot be told apart, or whitespace could belong to two
    parts.
    """
    fields = [field for field in (template.content, template.reasoning, template.calls) if field]
    for one, other in permutations((mark for field in fields for mark in field.opens), 2):
        if one is not other and _are_confused(one, other):
            raise UnreadableTemplate(f"two regions open with {other.text!r}")
    strips_all = template.content.strips and (
        template.reasoning is None or template.reasoning.strips
    )
    marks = (mark for field in fields for mark in (*field.opens, *field.closes))
    spaced = next((mark for mark in marks if mark.has_space), None)
    if spaced and not strips_all:
        raise UnreadableTemplate(
            f"whitespace around {spaced.text!r} could belong to the mark or to the text"
        )


def _are_confused(one: Mark, other: Mark) -> bool:
    return one.text.startswith(other.text) and bool(one.rest or other.rest or one == other)


def _read_text_field(name: str, field: _Field) -> TextField:
    if field.content != "text" or field.transform is not None:
        raise UnreadableTemplate(f"{name} must be plain text")
    _check_arguments(name, field, "strip")
    opens, closes = _read_field_marks(name, field)
    if any(Gap.NAME in mark.rest for mark in opens):
        raise UnreadableTemplate(f"{name}: the opening mark has a name")
    return TextField(
        opens=opens,
        closes=closes,
        strips=field.content_args.get("strip", True) is True,
        separator="\n\n" if field.join is None else field.join,
    )


def _read_calls_field(name: str, field: _Field) -> CallsField:
    opens, closes = _read_field_marks(name, field)
    if field.content != "json":
        raise UnreadableTemplate(f"{name} are written as {field.content}")
    if not opens or not closes:
        raise UnreadableTemplate(f"{name} need an opening mark and a closing mark")
    _check_arguments(name, field, "allow_non_json")
    name_key, arguments_key = _find_keys(name, field, opens)
    return CallsField(
        opens=opens,
        closes=closes,
        name_key=name_key,
        arguments_key=arguments_key,
        is_list=field.transform_each,
    )


def _check_arguments(name: str, field: _Field, known: str) -> None:
    """Raises UnreadableTemplate for arguments other than `known`, unless they are off or empty."""
    for key, value in field.content_args.items():
        if key != known and value not in (False, None, []):
            raise UnreadableTemplate(f"{name}: {key} of {field.content} is not supported")


def _find_keys(name: str, field: _Field, opens: tuple[Mark, ...]) -> tuple[str, str]:
    """Returns the keys of the name and the arguments in a call's object; "" and "" if the mark has
    the name.
    """
    match field.transform:
        case {"type": "function", "function": "{content}", **others} if (
            not others and not field.transform_each
        ):
            return "name", "arguments"
        case {
            "type": "function",
            "function": {"name": str(name_text), "arguments": str(arguments_text), **more},
            **others,
        } if not more and not others:
            member = _PLACEHOLDER if field.transform_each else _MEMBER
            name_key, arguments_key = member.fullmatch(name_text), member.fullmatch(arguments_text)
            if name_key and arguments_key:
                return name_key[1], arguments_key[1]
            has_name = all(mark.group and name_text == f"{{{mark.group}}}" for mark in opens)
            if arguments_text == "{content}" and has_name and not field.transform_each:
                return "", ""
    raise UnreadableTemplate(
        f"{name}: transform must give a function's name and its arguments in JSON"
    )


def _read_field_marks(name: str, field: _Field) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
    opens = _read_marks(f"{name}: open", field.open, field.open_pattern)
    closes = _read_marks(f"{name}: close", field.close, field.close_pattern, may_be_end=True)
    if any(part is not Gap.SPACE for mark in closes for part in mark.rest):
        raise UnreadableTemplate(f"{name}: close_pattern {field.close_pattern!r} is not supported")
    return opens, closes


def _read_marks(
    place: str, literal: str | list[str] | None, pattern: str | None, *, may_be_end: bool = False
) -> tuple[Mark, ...]:
    if literal is not None and pattern is not None:
        raise UnreadableTemplate(f"{place} must be texts or a pattern, not both")
    if pattern is not None:
        try:
            return read_patterns(pattern, may_be_end=may_be_end)
        except PatternError as error:
            raise UnreadableTemplate(f"{place}: {error}") from error
    texts = [literal] if isinstance(literal, str) else list(dict.fromkeys(literal or []))
    if "" in texts or literal == []:
        raise UnreadableTemplate(f"{place} is empty")
    return tuple(map(Mark, texts))
