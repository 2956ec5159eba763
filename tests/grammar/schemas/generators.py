"""Lists cases with schemas from client libraries and from the documentation of APIs."""

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

CASES = [
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
            '{"type": "div", "label": "", "children": [], '
            '"attributes": [{"name": "a", "value": "b"}]}',
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
