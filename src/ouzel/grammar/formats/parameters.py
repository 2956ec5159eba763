"""Writes the grammar of arguments between marks, as Qwen3-Coder, GLM 4.5 and MiniCPM5 write them.

1. Parameters come in the order of the schema. Unlisted parameters may come only if the schema lists
   none, or describes them.
2. Strings are bare, up to the first end mark; other values are JSON. The reader of Qwen's calls
   removes one newline from each end of a bare string, so a string with constraints has both
   newlines.
3. Space between the parts belongs to the literal after it: the lexer never goes back.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice

from ouzel.grammar.caps import MAX_KINDS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.reader import Schema, as_lark, normalise
from ouzel.grammar.schema.string_formats import PATTERNS
from ouzel.grammar.write.nodes import (
    Choice,
    Enclosed,
    Foreign,
    Literal,
    Node,
    Regular,
    Repeat,
    Sequence,
    optional,
)
from ouzel.grammar.write.regex import ANY_TEXT, Anchors, escape, read_pattern
from ouzel.types.tools import ParameterMarks

# bounded, as between the parts of JSON: otherwise a model may write nothing else for ever
_SPACE = r"[ \n\r\t]{0,34}"
_NAME = "[a-zA-Z_][a-zA-Z0-9_]*"
_ANY_SPACE = Regular(f"/{_SPACE}/")
_SCALARS = {
    "null": '"null"',
    "boolean": '("true" | "false")',
    "integer": "/-?(?:0|[1-9][0-9]*)/",
    "number": r"/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/",
}
_OF_OBJECTS = {"type", "properties", "required", "additionalProperties", "$defs"}
_OF_STRINGS = {"type", "pattern", "format", "minLength", "maxLength", "$defs"}
_OF_OTHERS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("items", "prefixItems", "minItems", "maxItems"),
    *("properties", "patternProperties", "additionalProperties", "required"),
    *("minProperties", "maxProperties"),
}


Spell = Callable[[str], Node]


def parameters(
    schema: object, path: str, spell: Spell, marks: ParameterMarks, *, is_strict: bool
) -> Node:
    """Writes all parameters of one call and the space after them. Raises GrammarError."""
    root = normalise([schema], is_strict=is_strict)
    definitions = root.get("$defs")
    reader = _Reader(definitions if isinstance(definitions, dict) else {}, path, marks, spell)
    return Sequence((*reader.parameters(root), _ANY_SPACE))


def parameter_around(name: str, content: Node, spell: Spell, marks: ParameterMarks) -> Node:
    """Writes a parameter: its opening, `content` (a bare text with its end mark), and space."""
    newline = Literal("\n" if marks.has_newlines else "")
    return Sequence((_opening(spell(name), spell, marks), newline, content, _ANY_SPACE))


def text_end(spell: Spell, marks: ParameterMarks) -> Node:
    return spell(("\n" if marks.has_newlines else "") + marks.end)


def _opening(name: Node, spell: Spell, marks: ParameterMarks) -> Node:
    value_begin = [_ANY_SPACE, spell(marks.value_begin)] if marks.value_begin else []
    return Sequence((_ANY_SPACE, spell(marks.begin), name, spell(marks.name_end), *value_begin))


class _Reader:
    def __init__(self, definitions: Schema, path: str, marks: ParameterMarks, spell: Spell) -> None:
        self._definitions = definitions
        self._path = path
        self._marks = marks
        self._newline = "\n" if marks.has_newlines else ""
        self._spell = spell

    def parameters(self, root: Schema) -> Iterator[Node]:
        root = self._resolve(root)
        if other := root.keys() - _OF_OBJECTS:
            raise GrammarError(
                f"the keyword {min(other)!r} at # of {self._path} is not supported for "
                f"{self._marks.style} parameters"
            )
        properties, required = _object(root.get("properties", {})), _names(root.get("required", []))
        if missing := [name for name in required if name not in properties]:
            raise GrammarError(
                f"{self._path} requires {missing[0]!r}, which is missing in its properties"
            )
        for name, schema in properties.items():
            one = self._parameter(self._opening(self._spell(name)), schema)
            yield one if name in required else optional(one)
        others = root.get("additionalProperties", not properties)
        if others is not False:
            opening = self._opening(_other_names(list(properties)))
            yield Repeat(self._parameter(opening, others), 0, None)

    def _opening(self, name: Node) -> Node:
        return _opening(name, self._spell, self._marks)

    def _parameter(self, opening: Node, schema: object) -> Node:
        """Writes a parameter with options for the kinds of its value.

        A bare string without bounds covers all other kinds.
        """
        kinds = list(islice(self._kinds(schema), MAX_KINDS + 1))
        check_at_most(
            f"the number of alternatives of a parameter in {self._path}", len(kinds), MAX_KINDS
        )
        if any(_is_any_string(kind) for kind in kinds):
            text = Regular(f"/{ANY_TEXT}/", is_open=True)
            return Sequence((opening, Enclosed(text, self._spell(self._marks.end))))
        if any(kind.get("type") == "string" and not _is_listed(kind) for kind in kinds):
            bare = Choice(tuple(self._bare(kind) for kind in kinds))
            return Sequence((opening, Literal(self._newline), Enclosed(bare, self._string_end())))
        options = [Sequence((opening, *self._value(kind))) for kind in kinds]
        return Choice(tuple(options)) if len(options) > 1 else options[0]

    def _kinds(self, schema: object, depth: int = 0) -> Iterator[Schema]:
        """Yields the alternatives of the schema; each alternative is written in one way."""
        own: Schema = {} if schema else {"enum": []}  # true admits every value, false none
        schema = self._resolve(schema if isinstance(schema, dict) else own)
        alternatives = schema.get("anyOf", schema.get("oneOf"))
        types = schema.get("type")
        if isinstance(alternatives, list) and len(schema.keys() - {"$defs"}) == 1 and depth < 10:
            for alternative in alternatives:
                yield from self._kinds(alternative, depth + 1)
        elif isinstance(types, list) and "enum" not in schema and "const" not in schema:
            if "string" in types:
                of_string = {key: schema[key] for key in schema if key not in _OF_OTHERS}
                yield {**of_string, "type": "string"}
            if others := [name for name in types if name != "string"]:
                yield {**schema, "type": others}
        else:
            yield schema

    def _value(self, schema: Schema) -> tuple[Node, ...]:
        """Returns the value and its end mark. In a list of strings, space belongs to the string."""
        if _is_listed(schema):
            return (Literal(self._newline), _list_values(schema), self._string_end())
        value = Foreign(as_lark(schema | {"$defs": self._definitions}))
        return (_ANY_SPACE, value, _ANY_SPACE, self._spell(self._marks.end))

    def _string_end(self) -> Node:
        return text_end(self._spell, self._marks)

    def _bare(self, schema: Schema) -> Node:
        """Writes a bounded string, or a value in its place: one lexeme must match all of them."""
        if _is_listed(schema):
            return _list_values(schema)
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        if names == ["string"]:
            return self._string(schema)
        scalars = [_SCALARS[name] for name in names if isinstance(name, str) and name in _SCALARS]
        if schema.keys() - {"type", "$defs"} or len(scalars) < len(names):
            raise GrammarError(
                f"{self._path} has a string with bounds beside other values, which "
                f"{self._marks.style} cannot distinguish"
            )
        return Choice(tuple(map(Regular, scalars)))

    def _string(self, schema: Schema) -> Node:
        if other := schema.keys() - _OF_STRINGS:
            raise GrammarError(
                f"the keyword {min(other)!r} of a string in {self._path} is not supported for "
                f"{self._marks.style}"
            )
        conditions = [f"/(?s:.{{{schema.get('minLength', 0)},{schema.get('maxLength', '')}}})/"]
        if isinstance(pattern := schema.get("pattern"), str):
            conditions.append(_search(pattern, f"the pattern in {self._path}"))
        if isinstance(name := schema.get("format"), str):
            conditions.append(read_pattern(PATTERNS[name], name).lark)
        return Regular(f"({' & '.join(conditions)})", is_open=True)

    def _resolve(self, schema: Schema) -> Schema:
        allowed = {"$ref", "$defs"}
        while isinstance(reference := schema.get("$ref"), str) and schema.keys() <= allowed:
            schema = _object(self._definitions[reference.removeprefix("#/$defs/")])
        return schema


def _other_names(names: list[str]) -> Node:
    name = f"/{_NAME}/"
    return Regular(f"({name} & ~/(?:{'|'.join(map(escape, names))})/)" if names else name)


def _search(pattern: str, path: str) -> str:
    """Returns a pattern for a whole text in which the given pattern matches somewhere."""
    begins, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = read_pattern(
        pattern.removeprefix("^")[: -1 if ends else None], path, anchors=Anchors.REFUSED
    ).lark
    return f"({'' if begins else f'/{ANY_TEXT}/ '}{body}{'' if ends else f' /{ANY_TEXT}/'})"


def _is_listed(schema: Schema) -> bool:
    return "enum" in schema or "const" in schema


def _list_values(schema: Schema) -> Node:
    """Writes a choice of the listed values: strings bare, other values as JSON."""
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    if not isinstance(values, list) or not values:
        raise GrammarError("a parameter's schema admits nothing")
    texts = [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
    ]
    return Choice(tuple(map(Literal, texts)))


def _is_any_string(schema: Schema) -> bool:
    return not schema.keys() - {"type", "$defs"} and schema.get("type", "string") == "string"


def _object(value: object) -> Schema:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
