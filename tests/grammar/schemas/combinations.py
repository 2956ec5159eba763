"""Lists cases for anyOf and allOf, alone and beside other keywords."""

from tests.grammar.schemas.cases import (
    DIGIT,
    NULL,
    PLAIN,
    SHORT,
    Case,
    array,
    closed,
    closed_object,
)

BOOLEAN = {"type": "boolean"}
INTEGER = {"type": "integer"}

ANY_OF = [
    Case("anyOf", {"anyOf": [INTEGER, closed(a=NULL)]}, ("1", '{"a": null}'), ("null", '{"a": 1}')),
    Case("anyOf of one", {"anyOf": [NULL]}, ("null",), ("1",)),
    Case(
        "anyOf of what overlaps",
        {"anyOf": [INTEGER, {"type": "number", "minimum": 5}]},
        ("1", "5.5"),
        ("1.5",),
    ),
    Case(
        "anyOf of constants",
        {"anyOf": [{"const": "a"}, {"const": "b"}, {"const": 1}]},
        ('"a"', '"b"', "1"),
        ('"c"',),
    ),
    Case(
        "anyOf beside a type",
        {"type": "integer", "anyOf": [{"minimum": 3}, {"maximum": -3}]},
        ("3", "-4"),
        ("0", '"a"'),
    ),
    Case(
        "anyOf beside properties",
        {
            **closed_object({"a": INTEGER, "b": NULL}, "a", "b"),
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ('{"a": 1}', '{"b": null}', '{"a": 1, "b": null}'),
        ("{}",),
    ),
    Case(
        "anyOf of objects that begin alike",
        {
            "anyOf": [
                closed(kind={"const": "cat"}, lives=DIGIT),
                closed(kind={"const": "dog"}, name=SHORT),
            ]
        },
        ('{"kind": "cat", "lives": 9}', '{"kind": "dog", "name": "Rex"}'),
        ('{"kind": "cat", "name": "Rex"}',),
    ),
    Case(
        "anyOf in anyOf",
        {"anyOf": [{"anyOf": [NULL, BOOLEAN]}, {"anyOf": [DIGIT]}]},
        ("null", "true", "3"),
        ('"a"',),
    ),
    Case("anyOf in items", array({"anyOf": [NULL, DIGIT]}, maxItems=3), ("[null, 1]",), ('["a"]',)),
    Case(
        "anyOf in additionalProperties",
        {"type": "object", "additionalProperties": {"anyOf": [NULL, DIGIT]}},
        ('{"a": 1, "b": null}',),
        ('{"a": "x"}',),
    ),
    Case(
        "anyOf of strings",
        {"anyOf": [{"type": "string", "pattern": "^a+$", "maxLength": 3}, {"enum": ["b", "aab"]}]},
        ('"aa"', '"b"', '"aab"'),
        ('"ab"',),
    ),
    Case(
        "anyOf of arrays",
        {"anyOf": [array(NULL, minItems=1, maxItems=2), array(DIGIT, maxItems=2)]},
        ("[null]", "[1]", "[]"),
        ("[null, 1]",),
    ),
    Case(
        "anyOf of object and array",
        {"anyOf": [closed(a=NULL), array(closed(a=NULL), maxItems=1)]},
        ('{"a": null}', '[{"a": null}]'),
        ("[null]",),
    ),
    Case(
        "anyOf of twenty",
        {"anyOf": [closed_object({f"field{n}": DIGIT}) for n in range(20)]},
        ('{"field0": 1}', '{"field19": 2}'),
        ('{"field20": 1}',),
    ),
    Case(
        "anyOf with an impossible part",
        {"anyOf": [{"type": "string", "minLength": 3, "maxLength": 1}, NULL]},
        ("null",),
        ('"a"',),
    ),
]

ALL_OF = [
    Case(
        "allOf",
        {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 8}]},
        ("3", "8"),
        ("2", "9", '"a"'),
    ),
    Case(
        "allOf of objects",
        {
            "allOf": [
                {"type": "object", "properties": {"a": NULL}, "required": ["a"]},
                {"type": "object", "properties": {"b": BOOLEAN}, "required": ["b"]},
            ],
            "maxProperties": 2,
        },
        ('{"a": null, "b": true}',),
        ('{"a": null}', '{"a": null, "b": 1}'),
    ),
    Case("allOf of one", {"allOf": [NULL]}, ("null",), ("1",)),
    Case(
        "allOf beside bounds",
        {"type": "integer", "minimum": 2, "allOf": [{"maximum": 5}, {"minimum": 4}]},
        ("4", "5"),
        ("3", "6"),
    ),
    Case(
        "allOf of patterns",
        {"type": "string", "maxLength": 4, "allOf": [{"pattern": "a"}, {"pattern": "b"}]},
        ('"ab"', '"bxa"'),
        ('"a"', '"b"'),
    ),
    Case(
        "allOf of enums",
        {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
        ("2", "3"),
        ("1", "4"),
    ),
    Case(
        "allOf of multiples",
        {
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
            "allOf": [{"multipleOf": 4}, {"multipleOf": 6}],
        },
        ("12", "0"),
        ("4", "6"),
    ),
    Case(
        "allOf of types",
        {
            "allOf": [
                {"type": ["integer", "null", "string"]},
                {"type": ["null", "integer"], "minimum": 3},
            ]
        },
        ("null", "3"),
        ('"a"', "2"),
    ),
    Case(
        "allOf of number and integer",
        {"allOf": [{"type": "number", "maximum": 9}, {"type": "integer"}]},
        ("9", "-5"),
        ("1.5", "10"),
    ),
    Case(
        "allOf of items",
        {"type": "array", "maxItems": 2, "allOf": [{"items": INTEGER}, {"items": {"minimum": 2}}]},
        ("[2, 3]", "[]"),
        ("[1]", '["a"]'),
    ),
    Case(
        "allOf of lengths",
        {"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 2}]},
        ('"a"', '"ab"'),
        ('""', '"abc"'),
    ),
    Case(
        "allOf, one closed",
        {"type": "object", "allOf": [closed_object({"a": NULL}, "a"), {"properties": {"b": NULL}}]},
        ("{}", '{"a": null}'),
        ('{"b": null}', '{"a": null, "b": null}'),
    ),
    Case(
        "allOf, others of one",
        {
            "type": "object",
            "allOf": [{"properties": {"a": INTEGER}}, {"additionalProperties": NULL}],
        },
        ('{"b": null}', "{}"),
        ('{"a": 1}', '{"a": null}', '{"b": 1}'),
    ),
    Case(
        "allOf of the same property",
        {
            **closed(a=INTEGER),
            "allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"maximum": 5}}}],
        },
        ('{"a": 4}',),
        ('{"a": 2}', '{"a": 6}'),
    ),
    Case(
        "allOf of pattern and property",
        {
            "type": "object",
            "allOf": [
                {"patternProperties": {"^a": INTEGER}},
                {"properties": {"ab": {"minimum": 5}}},
            ],
            "additionalProperties": False,
        },
        ("{}",),
        ('{"ab": 1}',),
        modes=PLAIN,
    ),
    Case(
        "allOf in allOf",
        {"allOf": [{"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"maximum": 3}]},
        ("1", "3"),
        ("0", "4"),
    ),
    Case(
        "allOf of anyOf",
        {"allOf": [{"anyOf": [INTEGER, NULL]}, {"anyOf": [NULL, BOOLEAN]}]},
        ("null",),
        ("1", "true"),
    ),
    Case(
        "anyOf of allOf",
        {"anyOf": [{"allOf": [{"type": "integer"}, {"minimum": 7}]}, NULL]},
        ("7", "null"),
        ("6",),
    ),
    Case(
        "allOf of const and type",
        {"allOf": [{"const": "a"}, {"type": "string"}]},
        ('"a"',),
        ('"b"',),
    ),
    Case(
        "allOf of required",
        {
            **closed_object({"a": NULL, "b": NULL}, "a", "b"),
            "allOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ('{"a": null, "b": null}',),
        ('{"a": null}',),
    ),
    Case(
        "allOf with annotations",
        {"type": "integer", "allOf": [{"description": "x"}, {"title": "y"}], "maximum": 3},
        ("3",),
        ("4",),
    ),
]

CASES = [*ANY_OF, *ALL_OF]
