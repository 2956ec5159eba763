"""Lists cases for patternProperties, minProperties, maxProperties, and rules without effect."""

from tests.grammar.schemas.cases import (
    DIGIT,
    NULL,
    PLAIN,
    Case,
    closed_object,
    named,
)

BOOLEAN = {"type": "boolean"}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

CASES = [
    Case(
        "patternProperties",
        {"type": "object", "patternProperties": {"^n_": NULL}, "additionalProperties": False},
        ("{}", '{"n_a": null}'),
        ('{"n_a": 1}', '{"a": null}'),
    ),
    Case(
        "patternProperties, two",
        {
            "type": "object",
            "patternProperties": {"^a": NULL, "^b": DIGIT},
            "additionalProperties": False,
        },
        ('{"ax": null, "b": 3}',),
        ('{"b": null}', '{"c": 1}'),
    ),
    Case(
        "patternProperties, open",
        {"type": "object", "patternProperties": {"^n_": NULL}},
        ('{"n_a": null, "x": 1}',),
        ('{"n_a": 1}', r'{"\u006e_a": 1}'),
    ),
    Case(
        "patternProperties and others",
        {"type": "object", "patternProperties": {"^n_": NULL}, "additionalProperties": DIGIT},
        ('{"n_a": null, "x": 1}',),
        ('{"n_a": 1}', '{"x": null}'),
    ),
    Case(
        "patternProperties and properties",
        {**named("id"), "patternProperties": {"^x_": DIGIT}},
        ('{"id": null}', '{"id": null, "x_a": 1}'),
        ('{"id": null, "x_a": null}', '{"x_a": 1}'),
    ),
    Case(
        "patternProperties that hold for a property",
        {
            "type": "object",
            "properties": {"ab": {"minimum": 5}},
            "patternProperties": {"^a": {"type": "integer"}},
            "required": ["ab"],
            "additionalProperties": False,
        },
        ('{"ab": 5}', '{"ab": 6, "ac": 1}'),
        ('{"ab": 1}', '{"ab": "x"}'),
    ),
    Case(
        "patternProperties that forbid a property",
        {
            "type": "object",
            "properties": {"ab": NULL},
            "patternProperties": {"^a": {"type": "integer"}},
            "additionalProperties": False,
        },
        ("{}", '{"ac": 1}'),
        ('{"ab": null}',),
        modes=PLAIN,
    ),
    Case(
        "patternProperties of a required name",
        {
            "type": "object",
            "patternProperties": {"^a": DIGIT},
            "required": ["ab"],
            "additionalProperties": False,
        },
        ('{"ab": 1}', '{"ab": 1, "ac": 2}'),
        ("{}", '{"ac": 1}'),
    ),
    Case(
        "patternProperties of digits",
        {"type": "object", "patternProperties": {"^[0-9]+$": NULL}, "additionalProperties": False},
        ('{"12": null}',),
        ('{"a": null}',),
    ),
    Case(
        "patternProperties of unicode",
        {"type": "object", "patternProperties": {"^ü.$": NULL}, "additionalProperties": False},
        ('{"üb": null}',),
        ('{"ub": null}',),
    ),
    Case(
        "patternProperties of no schema",
        {"type": "object", "patternProperties": {"^_": False}, "additionalProperties": NULL},
        ('{"a": null}',),
        ('{"_a": null}',),
    ),
    Case("maxProperties of zero", {"type": "object", "maxProperties": 0}, ("{}",), ('{"a": 1}',)),
    Case(
        "maxProperties",
        {"type": "object", "additionalProperties": NULL, "maxProperties": 2},
        ("{}", '{"a": null, "b": null}'),
        ('{"a": null, "b": null, "c": null}',),
    ),
    Case(
        "minProperties",
        {"type": "object", "additionalProperties": NULL, "minProperties": 1},
        ('{"a": null}', '{"a": null, "b": null}'),
        ("{}",),
    ),
    Case(
        "minProperties and required",
        {
            "type": "object",
            "required": ["a"],
            "additionalProperties": NULL,
            "minProperties": 2,
            "maxProperties": 3,
        },
        ('{"a": null, "b": null}',),
        ('{"a": null}', '{"a": null, "a": null}'),
    ),
    Case(
        "minProperties that says nothing",
        {**named("a", "b"), "minProperties": 1},
        ('{"a": null, "b": null}',),
        ("{}",),
    ),
    Case(
        "minProperties of optional names",
        {**closed_object({"a": NULL, "b": NULL}, "a", "b"), "minProperties": 1},
        ('{"a": null}', '{"a": null, "b": null}'),
        ("{}",),
    ),
    Case(
        "maxProperties of optional names",
        {**closed_object({"a": NULL, "b": NULL}, "a", "b"), "maxProperties": 1},
        ("{}", '{"a": null}'),
        ('{"a": null, "b": null}',),
    ),
    Case(
        "one property of any name",
        {"type": "object", "additionalProperties": DIGIT, "minProperties": 1, "maxProperties": 1},
        ('{"x": 1}',),
        ("{}", '{"x": 1, "y": 1}'),
    ),
    Case(
        "propertyNames that say nothing",
        {**named("a"), "propertyNames": True},
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "dependencies of nothing",
        {**named("a"), "dependencies": {}, "dependentRequired": {}, "dependentSchemas": {}},
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "unevaluatedProperties true",
        {**named("a"), "unevaluatedProperties": True},
        ('{"a": null}',),
        ("{}",),
    ),
]
