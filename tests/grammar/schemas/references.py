"""Lists cases for $ref, $defs, definitions, $id, $anchor and recursion."""

from tests.grammar.schemas.cases import (
    DIGIT,
    DRAFT_7,
    NULL,
    PLAIN,
    SHORT,
    Case,
    array,
    closed,
    closed_object,
)

TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "left": {"$ref": "#"}},
    "required": ["value"],
    "additionalProperties": False,
}
LIST = {"$defs": {"node": array({"$ref": "#/$defs/node"}, maxItems=2)}, "$ref": "#/$defs/node"}
JSON_VALUE = {
    "$defs": {
        "value": {
            "anyOf": [
                {"type": ["null", "boolean", "integer"]},
                array({"$ref": "#/$defs/value"}, maxItems=1),
                {
                    "type": "object",
                    "additionalProperties": {"$ref": "#/$defs/value"},
                    "maxProperties": 1,
                },
            ]
        }
    },
    "$ref": "#/$defs/value",
}
EXPRESSION = {
    "$defs": {
        "expression": {"anyOf": [DIGIT, {"$ref": "#/$defs/operation"}]},
        "operation": closed(
            operator={"enum": ["+", "*"]},
            left={"$ref": "#/$defs/expression"},
            right={"$ref": "#/$defs/expression"},
        ),
    },
    "$ref": "#/$defs/expression",
}

CASES = [
    Case(
        "reference",
        {"$defs": {"s": SHORT}, **closed(a={"$ref": "#/$defs/s"}, b={"$ref": "#/$defs/s"})},
        ('{"a": "x", "b": "y"}',),
        ('{"a": 1, "b": "y"}',),
    ),
    Case(
        "reference and more",
        {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 4, "maximum": 6},
        ("4", "6"),
        ("3", "7", '"a"'),
    ),
    Case(
        "reference by anchor",
        {"$defs": {"n": {"$anchor": "here", **NULL}}, **closed(a={"$ref": "#here"})},
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference by id",
        {"$defs": {"n": {"$id": "urn:x:n", **NULL}}, **closed(a={"$ref": "urn:x:n"})},
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference by an address",
        {
            "$id": "https://example.org/a/root",
            "$defs": {"n": {"$id": "leaf", **NULL}},
            **closed(a={"$ref": "leaf"}, b={"$ref": "https://example.org/a/leaf"}),
        },
        ('{"a": null, "b": null}',),
        ('{"a": 1, "b": null}',),
    ),
    Case(
        "reference by address and place",
        {
            "$id": "https://example.org/root",
            "$defs": {"n": NULL},
            **closed(a={"$ref": "https://example.org/root#/$defs/n"}),
        },
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference by address and anchor",
        {
            "$id": "https://example.org/root",
            "$defs": {"n": {"$anchor": "x", **NULL}},
            **closed(a={"$ref": "root#x"}),
        },
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference within a document of its own",
        {
            "$defs": {
                "d": {"$id": "urn:d", "$defs": {"n": NULL}, **closed(a={"$ref": "#/$defs/n"})}
            },
            "$ref": "urn:d",
        },
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference with escapes",
        {"$defs": {"a/b~c d": SHORT}, **closed(a={"$ref": "#/$defs/a~1b~0c%20d"})},
        ('{"a": "x"}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference with unicode",
        {
            "$defs": {"größe": NULL},
            **closed(a={"$ref": "#/$defs/größe"}, b={"$ref": "#/$defs/gr%C3%B6%C3%9Fe"}),
        },
        ('{"a": null, "b": null}',),
        ('{"a": 1, "b": null}',),
    ),
    Case(
        "reference to a property",
        closed(a={"type": "integer"}, b={"$ref": "#/properties/a"}),
        ('{"a": 1, "b": 2}',),
        ('{"a": 1, "b": "x"}',),
    ),
    Case(
        "reference into a list",
        {"anyOf": [NULL, closed(a={"$ref": "#/anyOf/0"})]},
        ("null", '{"a": null}'),
        ('{"a": 1}',),
    ),
    Case(
        "reference into items",
        closed(a=array(DIGIT, maxItems=1), b={"$ref": "#/properties/a/items"}),
        ('{"a": [1], "b": 2}',),
        ('{"a": [1], "b": []}',),
    ),
    Case(
        "reference to an unknown place",
        {"components": {"schemas": {"N": NULL}}, **closed(a={"$ref": "#/components/schemas/N"})},
        ('{"a": null}',),
        ('{"a": 1}',),
        modes=PLAIN,
    ),
    Case(
        "reference to true",
        {"$defs": {"t": True}, **closed(a={"$ref": "#/$defs/t"})},
        ('{"a": [1]}',),
        ("{}",),
    ),
    Case(
        "reference to a reference",
        {
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": DIGIT},
            "$ref": "#/$defs/a",
        },
        ("5",),
        ("10",),
    ),
    Case(
        "definitions",
        {"$schema": DRAFT_7, "definitions": {"n": NULL}, **closed(a={"$ref": "#/definitions/n"})},
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "definitions that nobody needs",
        {"$defs": {"bad": {"not": {}}, "worse": {"$ref": "#/nowhere"}}, **closed(a=NULL)},
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "reference with a description",
        {
            "$defs": {"n": NULL},
            **closed(a={"$ref": "#/$defs/n", "description": "x", "title": "y", "default": None}),
        },
        ('{"a": null}',),
        ('{"a": 1}',),
    ),
    Case(
        "reference in allOf",
        {"$defs": {"n": DIGIT}, "allOf": [{"$ref": "#/$defs/n"}, {"minimum": 4}]},
        ("4",),
        ("3",),
    ),
    Case(
        "reference in anyOf, nullable",
        {"$defs": {"n": closed(a=NULL)}, **closed(x={"anyOf": [{"$ref": "#/$defs/n"}, NULL]})},
        ('{"x": null}', '{"x": {"a": null}}'),
        ('{"x": {}}',),
    ),
    Case(
        "reference in oneOf",
        {"$defs": {"n": DIGIT}, "oneOf": [{"$ref": "#/$defs/n"}, NULL]},
        ("5", "null"),
        ('"a"',),
    ),
    Case(
        "reference in prefixItems",
        {
            "$defs": {"n": DIGIT},
            **array({"$ref": "#/$defs/n"}, prefixItems=[{"$ref": "#/$defs/n"}, NULL], maxItems=3),
        },
        ("[1, null, 2]",),
        ("[null]",),
    ),
    Case(
        "reference in patternProperties",
        {
            "$defs": {"n": NULL},
            "type": "object",
            "patternProperties": {"^a": {"$ref": "#/$defs/n"}},
            "additionalProperties": False,
        },
        ('{"ab": null}',),
        ('{"ab": 1}',),
    ),
    Case(
        "reference beside properties",
        {
            "$defs": {"base": {"properties": {"a": NULL}, "required": ["a"]}},
            "type": "object",
            "$ref": "#/$defs/base",
            "properties": {"b": NULL},
            "required": ["b"],
        },
        ('{"a": null, "b": null}',),
        ('{"a": 1, "b": null}',),
        narrower=('{"b": null, "a": null}',),
    ),
    Case(
        "recursion at the root",
        TREE,
        ('{"value": 1}', '{"value": 1, "left": {"value": 2}}'),
        ('{"left": {"value": 2}}', '{"value": 1, "left": {}}'),
    ),
    Case("recursion in arrays", LIST, ("[]", "[[], [[]]]"), ("[[], [], []]", "[1]")),
    Case("recursion of any JSON", JSON_VALUE, ("1", "[[null]]", '{"a": [true]}'), ("1.5", '["a"]')),
    Case(
        "mutual recursion",
        EXPRESSION,
        ("7", '{"operator": "+", "left": 1, "right": {"operator": "*", "left": 2, "right": 3}}'),
        ('{"operator": "-", "left": 1, "right": 2}',),
    ),
    Case(
        "recursion in a dictionary",
        {"type": "object", "additionalProperties": {"$ref": "#"}, "maxProperties": 1},
        ("{}", '{"a": {"b": {}}}'),
        ('{"a": 1}',),
    ),
    Case(
        "a linked list",
        {
            "$defs": {"n": {"anyOf": [NULL, closed(value=DIGIT, next={"$ref": "#/$defs/n"})]}},
            "$ref": "#/$defs/n",
        },
        ("null", '{"value": 1, "next": {"value": 2, "next": null}}'),
        ('{"value": 1}',),
    ),
    Case(
        "a tree of children",
        {
            "$defs": {
                "t": closed_object(
                    {"name": SHORT, "children": array({"$ref": "#/$defs/t"}, maxItems=1)},
                    "children",
                )
            },
            "$ref": "#/$defs/t",
        },
        ('{"name": "a"}', '{"name": "a", "children": [{"name": "b"}]}'),
        ('{"children": []}',),
    ),
    Case(
        "a chain of sixty",
        {
            "$defs": {str(n): array({"$ref": f"#/$defs/{n + 1}"}, maxItems=1) for n in range(60)}
            | {"60": NULL},
            "$ref": "#/$defs/0",
        },
        ("[[[]]]", "[]"),
        ("[1]",),
    ),
]
