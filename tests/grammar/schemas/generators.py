"""Schemas as the libraries of clients write them, and as the documentation of APIs shows them."""

from tests.grammar.schemas.cases import (
    DRAFT_7,
    NULL,
    PLAIN,
    SHORT,
    Case,
    array,
    closed,
    closed_object,
)

PYDANTIC = [
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

OTHERS = [
    Case(
        "zod",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "id": {
                    "type": "integer",
                    "minimum": -9007199254740991,
                    "maximum": 9007199254740991,
                },
                "role": {"type": "string", "enum": ["user", "admin"]},
                "tags": {"type": "array", "items": SHORT, "maxItems": 2},
                "nick": {"anyOf": [SHORT, NULL]},
            },
            "required": ["id", "role", "tags", "nick"],
            "additionalProperties": False,
        },
        ('{"id": 1, "role": "user", "tags": ["a"], "nick": null}',),
        ('{"id": 1, "role": "root", "tags": [], "nick": null}',),
    ),
    Case(
        "zod-to-json-schema",
        {
            "$schema": DRAFT_7,
            "definitions": {
                "mySchema": closed(
                    email={"type": "string", "format": "email", "maxLength": 9},
                    age={"type": "integer", "exclusiveMinimum": 0},
                )
            },
            "$ref": "#/definitions/mySchema",
        },
        ('{"email": "a@b.c", "age": 1}',),
        ('{"email": "a@b.c", "age": 0}',),
    ),
    Case(
        "zod, a record",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "propertyNames": {},
            "additionalProperties": {"type": "boolean"},
        },
        ('{"a": true}',),
        ('{"a": 1}',),
    ),
    Case(
        "zod, a nullable enum",
        {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]},
        ("null", '"a"'),
        ('"b"',),
    ),
    Case(
        "zod, an intersection",
        {
            "allOf": [
                {"type": "object", "properties": {"a": NULL}, "required": ["a"]},
                {"type": "object", "properties": {"b": NULL}, "required": ["b"]},
            ]
        },
        ('{"a": null, "b": null}',),
        ('{"a": null}',),
    ),
    Case(
        "OpenAI, calendar event",
        {
            "type": "object",
            "properties": {"name": SHORT, "date": SHORT, "participants": array(SHORT, maxItems=2)},
            "required": ["name", "date", "participants"],
            "additionalProperties": False,
        },
        ('{"name": "a", "date": "b", "participants": ["c"]}',),
        ('{"name": "a", "date": "b"}',),
    ),
    Case(
        "OpenAI, user interface",
        {
            "type": "object",
            "description": "Dynamically generated UI",
            "properties": {
                "type": {"type": "string", "enum": ["div", "button"]},
                "label": SHORT,
                "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1},
                "attributes": array(closed(name=SHORT, value=SHORT), maxItems=1),
            },
            "required": ["type", "label", "children", "attributes"],
            "additionalProperties": False,
        },
        (
            '{"type": "div", "label": "", "children": [], "attributes": [{"name": "a", "value": "b"}]}',
        ),
        ('{"type": "p", "label": "", "children": [], "attributes": []}',),
    ),
    Case(
        "OpenAI, weather",
        closed(
            location={**SHORT, "description": "City"},
            units={
                "type": ["string", "null"],
                "enum": ["celsius", "fahrenheit", None],
                "description": "Units",
            },
        ),
        ('{"location": "Rome", "units": null}',),
        ('{"location": "Rome", "units": "kelvin"}',),
    ),
    Case(
        "OpenAI, a union",
        {
            "$defs": {"user": closed(name=SHORT), "address": closed(city=SHORT)},
            **closed(item={"anyOf": [{"$ref": "#/$defs/user"}, {"$ref": "#/$defs/address"}]}),
        },
        ('{"item": {"name": "a"}}', '{"item": {"city": "b"}}'),
        ('{"item": {}}',),
    ),
    Case(
        "OpenAI, a linked list",
        {
            **closed(list={"$ref": "#/$defs/node"}),
            "$defs": {
                "node": closed(
                    value={"type": "number", "maximum": 5},
                    next={"anyOf": [{"$ref": "#/$defs/node"}, NULL]},
                )
            },
        },
        ('{"list": {"value": 1.5, "next": null}}',),
        ('{"list": null}',),
    ),
    Case(
        "OpenAI, moderation",
        closed(
            violates={"type": "boolean"},
            category={"type": ["string", "null"], "enum": ["violence", "sexual", None]},
            explanation={"type": ["string", "null"], "maxLength": 5},
        ),
        ('{"violates": false, "category": null, "explanation": null}',),
        ('{"violates": 0, "category": null, "explanation": null}',),
    ),
    Case(
        "LangChain, a joke",
        {
            "title": "joke",
            "description": "A joke.",
            "type": "object",
            "properties": {
                "setup": {**SHORT, "description": "The setup"},
                "punchline": SHORT,
                "rating": {"type": "integer", "description": "1 to 10", "default": None},
            },
            "required": ["setup", "punchline"],
        },
        ('{"setup": "a", "punchline": "b"}', '{"setup": "a", "punchline": "b", "rating": 7}'),
        ('{"setup": "a"}',),
    ),
    Case(
        "LangChain, tool arguments",
        {
            "properties": {
                "a": {"title": "A", "type": "integer"},
                "b": {"title": "B", "type": "integer"},
            },
            "required": ["a", "b"],
            "title": "multiplySchema",
            "type": "object",
        },
        ('{"a": 1, "b": 2}',),
        ('{"a": 1}',),
    ),
    Case(
        "LangChain, typed dictionary",
        {
            "title": "Extract",
            "type": "object",
            "properties": {
                "people": array(
                    closed_object({"name": {"anyOf": [SHORT, NULL], "default": None}}, "name"),
                    maxItems=2,
                )
            },
            "required": ["people"],
            "additionalProperties": False,
        },
        ('{"people": [{}, {"name": null}]}',),
        ('{"people": [{"name": 1}]}',),
    ),
    Case(
        "OpenAPI 3.0, nullable is nothing of JSON Schema's",
        closed(a={"type": "string", "nullable": True, "maxLength": 3, "example": "x"}),
        ('{"a": "x"}',),
        ('{"a": null}',),
        modes=PLAIN,
    ),
    Case(
        "OpenAPI 3.1, xml and documents",
        {
            **closed(
                a={
                    **NULL,
                    "xml": {"attribute": True},
                    "externalDocs": {"url": "https://example.org"},
                }
            ),
            "deprecated": True,
        },
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "OpenAPI, inheritance",
        {
            "definitions": {
                "Pet": {
                    "type": "object",
                    "properties": {"name": SHORT},
                    "required": ["name"],
                    "discriminator": {"propertyName": "name"},
                }
            },
            "allOf": [
                {"$ref": "#/definitions/Pet"},
                {
                    "type": "object",
                    "properties": {"lives": {"type": "integer", "maximum": 9}},
                    "required": ["lives"],
                },
            ],
        },
        ('{"name": "Tom", "lives": 9}',),
        ('{"name": "Tom"}',),
    ),
    Case(
        "schemars, an enum of Rust",
        {
            "oneOf": [
                {"type": "string", "enum": ["Unit"]},
                closed_object({"Tuple": array(False, prefixItems=[NULL], minItems=1)}),
                closed_object({"Struct": closed(x=NULL)}),
            ]
        },
        ('"Unit"', '{"Tuple": [null]}', '{"Struct": {"x": null}}'),
        ('{"Unit": null}',),
    ),
    Case(
        "MCP, an input schema",
        {
            "$schema": DRAFT_7,
            "type": "object",
            "properties": {
                "path": {"type": "string", "maxLength": 5},
                "edits": array(closed(old=SHORT, new=SHORT), maxItems=1),
                "dry": {"type": "boolean", "default": False},
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        },
        ('{"path": "a", "edits": [], "dry": true}',),
        ('{"path": "a"}',),
    ),
    Case(
        "annotations",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$comment": "c",
            "$vocabulary": {},
            "title": "Person",
            "description": "d",
            **closed(
                name={"type": "string", "minLength": 1, "maxLength": 5, "examples": ["Ann"]},
                age={"type": "integer", "minimum": 0, "default": 3, "readOnly": True},
            ),
            "deprecated": False,
        },
        ('{"name": "Ann", "age": 3}',),
        ('{"name": "", "age": 3}',),
    ),
    Case(
        "content of a string",
        {
            "type": "string",
            "maxLength": 4,
            "contentEncoding": "base64",
            "contentMediaType": "image/png",
            "contentSchema": {"not": {}},
        },
        ('"abcd"',),
        ('"abcde"',),
    ),
    Case(
        "x-guidance of the client's",
        {**closed(a=NULL), "x-guidance": {"lenient": True, "whitespace_pattern": "x"}},
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "x-guidance within",
        closed(a={**NULL, "x-guidance": {"coerce_one_of": True}}),
        ('{"a": null}',),
        ("{}",),
    ),
    Case(
        "then without if",
        {"type": "integer", "then": {"minimum": 3}, "else": False, "maximum": 5},
        ("2", "5"),
        ("6",),
    ),
    Case("if alone", {"type": "integer", "if": {"minimum": 3}, "maximum": 5}, ("2",), ("6",)),
    Case("not false", {**NULL, "not": False}, ("null",), ("1",)),
    Case(
        "anchors that nobody follows",
        {**NULL, "$dynamicAnchor": "a", "$anchor": "b", "$recursiveAnchor": True},
        ("null",),
        ("1",),
    ),
    Case(
        "keys of others",
        {"type": "integer", "maximum": 3, "x-order": 1, "x-foo": {"not": {}}},
        ("3",),
        ("4",),
    ),
    Case(
        "keys of nobody",
        {
            "type": "integer",
            "maximum": 3,
            "optional": True,
            "propertyOrdering": ["a"],
            "strict": True,
        },
        ("3",),
        ("4",),
        modes=PLAIN,
    ),
]

CASES = [*PYDANTIC, *OTHERS]
