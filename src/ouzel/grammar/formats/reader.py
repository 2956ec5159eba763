"""Compiles a format, from a client or an endpoint, to one grammar text.

The formats are XGrammar's structural tags, as OVMS accepts them, and our own: `json_object`,
`choice`, `free_text`, and `allow_text_before` of `triggered_tags`. All differences from XGrammar
are stricter: free text in a tag ends at the first end marker; unlimited text must be followed by a
literal or nothing; objects keep the order of their schema.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ouzel.grammar.caps import (
    MAX_ENUM_VALUES,
    MAX_GRAMMAR_CHARS,
    MAX_REPEATS,
    check_at_most,
    check_size,
)
from ouzel.grammar.ebnf.writer import grammar_to_lark
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats.free_text import bare_text, json_string
from ouzel.grammar.formats.members import Members
from ouzel.grammar.formats.parameters import parameters
from ouzel.grammar.formats.tags import TagReader
from ouzel.grammar.schema.reader import as_lark, normalise
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.grammar.write import nodes
from ouzel.grammar.write.nodes import Choice, Foreign, Node, Regular, Repeat, Tokens
from ouzel.grammar.write.regex import read_pattern
from ouzel.grammar.write.spelling import Spelling
from ouzel.grammar.write.writer import GrammarWriter
from ouzel.types.tools import ParameterMarks

Format = Mapping[str, object]


def compile_format(
    format: Format,
    vocabulary: GrammarVocabulary,
    *,
    strict: bool,
    styles: Mapping[str, ParameterMarks],
) -> str:
    """Returns the grammar text for `engine.grammars`. Raises GrammarError.

    `strict` closes schemas and allows only supported keywords. `styles` maps the `style` of a
    schema to its marks.
    """
    check_size(format)
    reader = _FormatReader(vocabulary, styles, is_strict=strict)
    text = reader.writer.finish(reader.read(format, "format"))
    check_at_most("the number of characters of the grammar", len(text), MAX_GRAMMAR_CHARS)
    return text


def add_reasoning(
    format: Format,
    *,
    start: str | None,
    ends: Sequence[str],
    is_open: bool,
    excludes: Iterable[str] = (),
    may_break: bool = True,
    calls: Format | None = None,
) -> dict[str, object]:
    """Returns the format of an output with reasoning, then `format` for the answer.

    The reasoning runs to the first of `ends` and has no text of `excludes`. With `is_open`, the
    prompt has already begun the reasoning; so it must if there is no `start`. Otherwise reasoning
    is optional and begins with `start`. With `may_break`, up to two newlines may follow the
    reasoning. `calls` may come within the reasoning, in place of its end and `format`; their first
    mark and the ends must be tokens of their own.
    """
    begin = "" if is_open or start is None else start
    text = {"type": "any_text", "excludes": [*excludes]}
    breaks = [{"type": "regex", "pattern": "\\n{0,2}"}] if may_break else []
    ended = _sequence({"type": "tag", "begin": begin, "content": text, "end": list(ends)}, *breaks)
    if calls is None:
        return _sequence(_optional(ended) if begin else ended, format)
    # Both ways share the lexemes of the start and of the text: the lexer distinguishes the ways
    # only by a token.
    opening: Format = {"type": "const_string", "value": begin}
    if calls == format:
        ended_inside = _sequence(
            {"type": "tag", "begin": "", "content": text, "end": list(ends)}, *breaks
        )
        either = _sequence(opening, _or(ended_inside, text))
        return _sequence(_optional(either) if begin else either, format)
    usual = _sequence(_optional(ended) if begin else ended, format)
    return _or(usual, _sequence(opening, _or(_sequence(text, calls))))


def _sequence(*elements: Format) -> dict[str, object]:
    return {"type": "sequence", "elements": list(elements)}


def _or(*elements: Format) -> dict[str, object]:
    return {"type": "or", "elements": list(elements)}


def _optional(content: Format) -> dict[str, object]:
    return {"type": "optional", "content": content}


class _FormatReader:
    def __init__(
        self,
        vocabulary: GrammarVocabulary,
        styles: Mapping[str, ParameterMarks],
        *,
        is_strict: bool,
    ) -> None:
        self.writer = GrammarWriter()
        self._styles = styles
        self._is_strict = is_strict
        self._spelling = Spelling(vocabulary)
        tags = TagReader(self.writer, self._spelling, self.read)
        self._readers: dict[str, Callable[[Members], Node]] = {
            "json_schema": self._json_schema,
            "json_object": self._json_object,
            "qwen_xml_parameter": self._qwen_xml_parameter,
            "const_string": self._const_string,
            "any_text": self._any_text,
            "regex": self._regex,
            "grammar": self._grammar,
            "free_text": self._free_text,
            "choice": self._choice,
            "sequence": self._sequence,
            "or": self._or,
            "tag": tags.tag,
            "triggered_tags": tags.triggered,
            "tags_with_separator": tags.separated,
            "optional": lambda members: self._repeated(members, 0, 1),
            "star": lambda members: self._repeated(members, 0, None),
            "plus": lambda members: self._repeated(members, 1, None),
            "repeat": self._repeat,
            "token": self._token,
            "any_tokens": self._any_tokens,
            "exclude_token": self._exclude_token,
            "structural_tag": self._structural_tag,
        }

    def read(self, value: object, path: str) -> Node:
        members = Members(value, path)
        name = members.text("type")
        if name not in self._readers:
            names = ", ".join(sorted(self._readers))
            raise GrammarError(f"{members.place('type')} must be one of {names}, given {name!r}")
        node = self._readers[name](members)
        members.finish()
        return node

    def _json_schema(self, members: Members) -> Node:
        schema, is_strict = _unwrap(members.take("json_schema"))
        is_strict = members.flag("strict") or is_strict or self._is_strict
        members.skip("name", "description")
        style = members.text("style") if "style" in members else "json"
        if style == "json":
            return self._schema([schema], is_strict=is_strict)
        return self._parameters(schema, style, members, is_strict=is_strict)

    def _qwen_xml_parameter(self, members: Members) -> Node:
        schema, is_strict = _unwrap(members.take("json_schema"))
        return self._parameters(schema, "qwen_xml", members, is_strict=is_strict or self._is_strict)

    def _parameters(self, schema: object, style: str, members: Members, *, is_strict: bool) -> Node:
        place, marks = members.place("json_schema"), self._find_marks(style, members)
        return parameters(schema, place, self._spelling.literal, marks, is_strict=is_strict)

    def _find_marks(self, style: str, members: Members) -> ParameterMarks:
        if style not in self._styles:
            names = ", ".join(["json", *self._styles])
            raise GrammarError(f"{members.place('style')} must be one of {names}, given {style!r}")
        return self._styles[style]

    def _json_object(self, members: Members) -> Node:
        return self._schema([{"type": "object"}], is_strict=False)

    def _schema(self, schemas: list[object], *, is_strict: bool) -> Node:
        return Foreign(as_lark(normalise(schemas, is_strict=is_strict)))

    def _const_string(self, members: Members) -> Node:
        return self._spelling.literal(members.text("value"))

    def _any_text(self, members: Members) -> Node:
        return self._spelling.any_text(
            members.texts("excludes", at_least=0), members.count("max_chars")
        )

    def _regex(self, members: Members) -> Node:
        pattern = read_pattern(members.text("pattern"), members.place("pattern"))
        return Regular(pattern.lark, is_open=pattern.is_unbounded)

    def _grammar(self, members: Members) -> Node:
        text = members.text("grammar")
        return self.writer.grammar(grammar_to_lark(text, self._spelling, members.place("grammar")))

    def _free_text(self, members: Members) -> Node:
        """Reads a text with a client's grammar: a JSON string, or with a `style` the parameter
        `name`.
        """
        if "style" not in members:
            return json_string(members, self.writer)
        return bare_text(
            members,
            self.writer,
            self._spelling.literal,
            self._find_marks(members.text("style"), members),
        )

    def _choice(self, members: Members) -> Node:
        texts = members.texts("choices")
        check_at_most(f"the number of {members.place('choices')}", len(texts), MAX_ENUM_VALUES)
        return Choice(tuple(map(self._spelling.literal, texts)))

    def _sequence(self, members: Members) -> Node:
        return nodes.Sequence(tuple(self._elements(members, members.items("elements"))))

    def _or(self, members: Members) -> Node:
        """Joins plain schemas to one schema, so that they need not begin differently."""
        items = members.items("elements")
        schemas = [
            item["json_schema"]
            for item in items
            if isinstance(item, Mapping) and _is_plain_schema(item)
        ]
        if len(schemas) == len(items):
            return self._schema(schemas, is_strict=self._is_strict)
        return Choice(tuple(self._elements(members, items)))

    def _elements(self, members: Members, items: list[object]) -> list[Node]:
        place = members.place("elements")
        return [self.read(item, f"{place}[{index}]") for index, item in enumerate(items)]

    def _repeated(self, members: Members, minimum: int, maximum: int | None) -> Node:
        return Repeat(
            self.read(members.take("content"), members.place("content")), minimum, maximum
        )

    def _repeat(self, members: Members) -> Node:
        """Reads a repetition; no `max`, or -1 as in XGrammar, means no limit."""
        minimum, maximum = members.count("min") or 0, members.integer("max")
        if maximum is not None and maximum < 0:
            maximum = None
        check_at_most(members.place("min"), minimum, MAX_REPEATS)
        check_at_most(members.place("max"), maximum or 0, MAX_REPEATS)
        if maximum is not None and minimum > maximum:
            raise GrammarError(
                f"{members.place('min')} must be <= max ({maximum}), given {minimum}"
            )
        return self._repeated(members, minimum, maximum)

    def _token(self, members: Members) -> Node:
        return Tokens(str(self._spelling.token_id(members.take("token"), members.place("token"))))

    def _any_tokens(self, members: Members) -> Node:
        maximum = members.count("max_tokens")
        return Repeat(self._tokens_but(members), 0, maximum)

    def _exclude_token(self, members: Members) -> Node:
        return self._tokens_but(members)

    def _tokens_but(self, members: Members) -> Node:
        place = members.place("exclude_tokens")
        excluded = members.items("exclude_tokens", at_least=0)
        return self._spelling.tokens_but(
            self._spelling.token_id(token, place) for token in excluded
        )

    def _structural_tag(self, members: Members) -> Node:
        """Reads a wrapped format, or the older form with schemas between begin and end."""
        if "format" in members:
            return self.read(members.take("format"), members.place("format"))
        place, structures = members.place("structures"), members.items("structures")
        tags: list[object] = [
            self._old_tag(Members(item, f"{place}[{index}]"))
            for index, item in enumerate(structures)
        ]
        triggers = members.texts("triggers")
        return self.read(
            {"type": "triggered_tags", "triggers": triggers, "tags": tags}, members.path
        )

    def _old_tag(self, members: Members) -> dict[str, object]:
        schema = members.take("schema") if "schema" in members else True
        tag: dict[str, object] = {"begin": members.text("begin"), "end": members.text("end")}
        members.finish()
        return tag | {"content": {"type": "json_schema", "json_schema": schema}}


def _is_plain_schema(item: Format) -> bool:
    return item.keys() == {"type", "json_schema"} and item["type"] == "json_schema"


def _unwrap(schema: object) -> tuple[object, bool]:
    """Returns a schema and its `strict` flag, also from OpenAI's form `{"name", "strict",
    "schema"}`.
    """
    if (
        isinstance(schema, dict)
        and "schema" in schema
        and schema.keys() <= {"name", "description", "strict", "schema"}
    ):
        return schema["schema"], schema.get("strict") is True
    return schema, False
