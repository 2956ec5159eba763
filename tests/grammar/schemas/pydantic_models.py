"""Lists cases with schemas that Pydantic generates."""

from tests.grammar.schemas.cases import (
    NULL,
    SHORT,
    Case,
    array,
    closed,
    closed_object,
)

CASES = [
    Case(
        "pydantic, a model",
        {
            "description": "Someone.",
            "properties": {
                "name": {"maxLength": 5, "minLength": 1, "title": "Name", "type": "string"},
                "age": {"exclusiveMinimum": 0, "maximum": 150, "title": "Age", "type": "integer"},
                "email": {
                    "anyOf": [{"format": "email", "type": "string", "maxLength": 20}, NULL],
                    "default": None,
                    "title": "Email",
                },
            },
            "required": ["name", "age"],
            "title": "Person",
            "type": "object",
        },
        ('{"name": "Ann", "age": 3}', '{"name": "Ann", "age": 3, "email": null}'),
        ('{"name": "", "age": 3}', '{"name": "Ann", "age": 0}'),
    ),
    Case(
        "pydantic, extra forbid",
        {
            "additionalProperties": False,
            "properties": {"x": {"title": "X", "type": "number", "minimum": 0, "maximum": 1}},
            "required": ["x"],
            "title": "P",
            "type": "object",
        },
        ('{"x": 0.5}',),
        ('{"x": 0.5, "y": 1}', '{"x": 2}'),
    ),
    Case(
        "pydantic, nested models and lists",
        {
            "$defs": {
                "Step": {
                    "properties": {
                        "explanation": {"title": "Explanation", **SHORT},
                        "output": {"title": "Output", **SHORT},
                    },
                    "required": ["explanation", "output"],
                    "title": "Step",
                    "type": "object",
                    "additionalProperties": False,
                }
            },
            "properties": {
                "steps": {
                    "items": {"$ref": "#/$defs/Step"},
                    "title": "Steps",
                    "type": "array",
                    "maxItems": 2,
                },
                "final_answer": {"title": "Final Answer", **SHORT},
            },
            "required": ["steps", "final_answer"],
            "title": "MathReasoning",
            "type": "object",
            "additionalProperties": False,
        },
        ('{"steps": [{"explanation": "a", "output": "b"}], "final_answer": "c"}',),
        ('{"steps": [{"explanation": "a"}], "final_answer": "c"}',),
    ),
    Case(
        "pydantic, an enum class",
        {
            "$defs": {"Colour": {"enum": ["red", "green"], "title": "Colour", "type": "string"}},
            "properties": {"colour": {"$ref": "#/$defs/Colour", "default": "red"}},
            "title": "Car",
            "type": "object",
            "additionalProperties": False,
        },
        ("{}", '{"colour": "red"}'),
        ('{"colour": "blue"}',),
    ),
    Case(
        "pydantic, a discriminated union",
        {
            "$defs": {
                "Cat": {
                    "properties": {"kind": {"const": "cat", "title": "Kind", "type": "string"}},
                    "required": ["kind"],
                    "title": "Cat",
                    "type": "object",
                    "additionalProperties": False,
                },
                "Dog": {
                    "properties": {
                        "kind": {"const": "dog", "title": "Kind", "type": "string"},
                        "age": {"type": "integer", "maximum": 20},
                    },
                    "required": ["kind", "age"],
                    "title": "Dog",
                    "type": "object",
                    "additionalProperties": False,
                },
            },
            "properties": {
                "pet": {
                    "discriminator": {
                        "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"},
                        "propertyName": "kind",
                    },
                    "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
                    "title": "Pet",
                }
            },
            "required": ["pet"],
            "title": "Owner",
            "type": "object",
            "additionalProperties": False,
        },
        ('{"pet": {"kind": "cat"}}', '{"pet": {"kind": "dog", "age": 3}}'),
        ('{"pet": {"kind": "dog"}}', '{"pet": {"kind": "cow"}}'),
    ),
    Case(
        "pydantic, a tuple",
        {
            "maxItems": 2,
            "minItems": 2,
            "prefixItems": [{"type": "integer", "maximum": 9}, SHORT],
            "type": "array",
        },
        ('[1, "a"]',),
        ("[1]", '["a", 1]'),
    ),
    Case(
        "pydantic, a dictionary of models",
        {
            "$defs": {"M": {**closed(x=NULL), "title": "M"}},
            "additionalProperties": {"$ref": "#/$defs/M"},
            "type": "object",
            "title": "Ms",
        },
        ('{"a": {"x": null}}', "{}"),
        ('{"a": {}}',),
    ),
    Case(
        "pydantic, a literal",
        {"enum": ["low", "high", 3], "title": "Level"},
        ('"low"', "3"),
        ('"mid"',),
    ),
    Case(
        "pydantic, a root model",
        {
            "items": {"format": "date", "type": "string"},
            "title": "Dates",
            "type": "array",
            "maxItems": 2,
        },
        ('["2024-02-29"]',),
        ('["x"]',),
    ),
    Case(
        "pydantic, dates and ids",
        closed(
            when={"format": "date-time", "title": "When", "type": "string"},
            id={"format": "uuid", "title": "Id", "type": "string"},
        ),
        ('{"when": "2024-02-29T00:00:00Z", "id": "123e4567-e89b-12d3-a456-426614174000"}',),
        ('{"when": "now", "id": ""}',),
    ),
    Case(
        "pydantic, a recursive model",
        {
            "$defs": {
                "Node": {
                    "properties": {
                        "value": {"type": "integer", "maximum": 9},
                        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL], "default": None},
                    },
                    "required": ["value"],
                    "title": "Node",
                    "type": "object",
                    "additionalProperties": False,
                }
            },
            "$ref": "#/$defs/Node",
        },
        ('{"value": 1, "next": {"value": 2, "next": null}}',),
        ('{"next": null}',),
    ),
    Case(
        "pydantic, an optional list of unions",
        closed_object(
            {
                "x": {
                    "anyOf": [
                        array({"anyOf": [{"type": "integer", "maximum": 9}, SHORT]}, maxItems=2),
                        NULL,
                    ],
                    "default": None,
                }
            },
            "x",
        ),
        ("{}", '{"x": [1, "a"]}', '{"x": null}'),
        ('{"x": [null]}',),
    ),
    Case(
        "pydantic, a decimal",
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 10},
                {"pattern": r"^[+-]?\d*\.?\d*$", "type": "string", "maxLength": 5},
            ]
        },
        ("1.5", '"1.5"'),
        ('"a"', "-1"),
    ),
    Case(
        "pydantic, bytes",
        {"format": "password", "type": "string", "writeOnly": True, "maxLength": 3},
        ('"abc"',),
        ('"abcd"',),
    ),
]
