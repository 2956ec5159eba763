"""Lists cases for oneOf, alone and beside other keywords."""

from tests.grammar.schemas.cases import (
    DIGIT,
    NULL,
    SHORT,
    Case,
    array,
    closed,
)

BOOLEAN = {"type": "boolean"}
INTEGER = {"type": "integer"}

CASES = [
    Case(
        "oneOf beside anyOf and allOf",
        {
            "anyOf": [{"maximum": 5}, {"minimum": 8}],
            "oneOf": [{"type": "integer"}, NULL],
            "allOf": [{"minimum": 3}],
        },
        ("3", "8", "null"),
        ("6", "2", "4.5"),
    ),
    Case(
        "oneOf of references, told apart by a constant",
        {
            "$defs": {"base": {"properties": {"k": {"enum": ["a", "c"]}}, "required": ["k"]}},
            "oneOf": [
                {"allOf": [{"$ref": "#/$defs/base"}], "type": "object", "maxProperties": 1},
                closed(k={"const": "b"}),
            ],
        },
        ('{"k": "a"}', '{"k": "b"}'),
        ('{"k": "d"}',),
    ),
    Case(
        "oneOf of null, booleans and numbers by enum",
        {"oneOf": [{"enum": [None, 1]}, {"enum": ["a", 2]}, {"const": False}]},
        ("null", "2", "false"),
        ("true", "3"),
    ),
    Case(
        "oneOf of closed objects",
        {"oneOf": [closed(a=NULL), closed(b=NULL), closed(a=NULL, b=NULL)]},
        ('{"a": null}', '{"b": null}', '{"a": null, "b": null}'),
        ("{}",),
    ),
    Case("oneOf", {"oneOf": [INTEGER, BOOLEAN]}, ("1", "true"), ("null",)),
    Case("oneOf of one", {"oneOf": [{"type": "string", "maxLength": 1}]}, ('"a"',), ('"ab"',)),
    Case(
        "oneOf, told apart",
        {"oneOf": [closed(k={"const": "a"}), closed(k={"const": "b"}, x=INTEGER)]},
        ('{"k": "a"}', '{"k": "b", "x": 1}'),
        ('{"k": "b"}', '{"k": "a", "x": 1}'),
    ),
    Case(
        "oneOf, told apart by enums",
        {"oneOf": [closed(k={"enum": ["a", "b"]}), closed(k={"enum": ["c"]})]},
        ('{"k": "a"}', '{"k": "c"}'),
        ('{"k": "d"}',),
    ),
    Case(
        "oneOf of enums",
        {"oneOf": [{"enum": ["a", "b"]}, {"enum": ["c"]}]},
        ('"a"', '"c"'),
        ('"d"',),
    ),
    Case(
        "oneOf of constants",
        {"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
        ("1", "2"),
        ("3",),
    ),
    Case(
        "oneOf of kinds",
        {"oneOf": [NULL, closed(a=NULL), array(NULL, maxItems=1), SHORT]},
        ("null", '{"a": null}', "[]", '"ab"'),
        ("1",),
    ),
    Case(
        "oneOf beside a type",
        {
            "type": "object",
            "oneOf": [
                {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                {"properties": {"k": {"const": "b"}}, "required": ["k"]},
            ],
        },
        ('{"k": "a"}', '{"k": "b"}'),
        ('{"k": "c"}', "{}"),
    ),
    Case(
        "oneOf within properties",
        closed(a={"oneOf": [NULL, DIGIT]}),
        ('{"a": null}', '{"a": 5}'),
        ('{"a": "x"}',),
    ),
    Case(
        "oneOf of refined types",
        {"oneOf": [{"type": "string", "format": "date"}, {"type": "integer", "minimum": 0}]},
        ('"2024-02-29"', "5"),
        ("-1", '"x"'),
    ),
    Case(
        "oneOf with discriminator",
        {
            "discriminator": {"propertyName": "t", "mapping": {"a": "#/x"}},
            "oneOf": [closed(t={"const": "a"}), closed(t={"const": "b"})],
        },
        ('{"t": "a"}', '{"t": "b"}'),
        ('{"t": "c"}',),
    ),
    Case(
        "oneOf in items", array({"oneOf": [NULL, BOOLEAN]}, maxItems=2), ("[null, true]",), ("[1]",)
    ),
]
