"""JSON schemas over all keywords, by name; each is to generate valid instances only."""

TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "left": {"$ref": "#"}},
    "required": ["value"],
    "additionalProperties": False,
}
LIST = {
    "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}},
    "$ref": "#/$defs/node",
}
PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Person",
    "type": "object",
    "description": "with annotations",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5, "examples": ["Ann"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 3},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3, "uniqueItems": False},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def closed(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SHORT = {"type": "string", "maxLength": 4}

SCHEMAS: list[tuple[str, object]] = [
    ("null", {"type": "null"}),
    ("boolean", {"type": "boolean"}),
    ("integer", {"type": "integer"}),
    ("number", {"type": "number"}),
    ("string", SHORT),
    ("array", {"type": "array", "items": {"type": "boolean"}, "maxItems": 4}),
    ("object", {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 1}),
    ("types", {"type": ["integer", "null"]}),
    ("nullable string", closed(a={"type": ["string", "null"], "maxLength": 3})),
    ("enum", {"enum": ["a", 'b"c', 1, 2.5, None, True, [1], {"x": "y"}]}),
    ("enum of unicode", {"enum": ["é", "日本", "😀", "a\nb", "\\", "</think>"]}),
    ("const", {"const": {"a": [1, "b", None]}}),
    ("const with a mark", closed(a={"const": "<think>x</think>"})),
    ("minimum and maximum", {"type": "integer", "minimum": -3, "maximum": 12}),
    ("exclusive bounds", {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5}),
    ("number bounds", {"type": "number", "minimum": 0.5, "maximum": 2.25}),
    ("negative numbers", {"type": "number", "maximum": -1.5, "minimum": -100}),
    ("multipleOf", {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100}),
    ("int32", {"type": "integer", "format": "int32"}),
    ("int32 and a bound", {"type": "integer", "minimum": 5, "format": "int32", "maximum": 9}),
    ("minLength", {"type": "string", "minLength": 2, "maxLength": 6}),
    ("pattern", {"type": "string", "pattern": "^[a-c]{2,4}$"}),
    ("pattern anywhere", {"type": "string", "pattern": "x[0-9]", "maxLength": 8}),
    ("pattern with slashes", {"type": "string", "pattern": '^/[a-z]+/"?$', "maxLength": 8}),
    ("date", {"type": "string", "format": "date"}),
    ("date-time", {"type": "string", "format": "date-time"}),
    ("time", {"type": "string", "format": "time"}),
    ("uuid", {"type": "string", "format": "uuid"}),
    ("email", {"type": "string", "format": "email", "maxLength": 20}),
    ("ipv4", {"type": "string", "format": "ipv4"}),
    ("array lengths", {"type": "array", "items": {"type": "integer", "maximum": 9}, "minItems": 1, "maxItems": 3}),
    ("prefixItems", {"type": "array", "prefixItems": [SHORT, {"type": "null"}], "items": False, "minItems": 2}),
    (
        "tuple, older form",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"type": "boolean"}, {"type": "null"}],
            "additionalItems": False,
        },
    ),
    ("properties", closed(a={"type": "integer"}, b=SHORT, c={"type": "boolean"})),
    ("optional properties", {**closed(a={"type": "integer"}, b=SHORT, c={"type": "null"}), "required": ["b"]}),
    ("required, not listed", {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}}),
    ("unicode keys", closed(**{"größe": {"type": "null"}, "日本": {"type": "boolean"}, 'a"b\\': {"type": "null"}})),
    ("a key like a mark", closed(**{"<tool_call>": {"type": "null"}, "a/b~c": {"type": "null"}})),
    (
        "patternProperties",
        {"type": "object", "patternProperties": {"^n_": {"type": "null"}}, "additionalProperties": False},
    ),
    ("maxProperties", {"type": "object", "maxProperties": 0}),
    ("anyOf", {"anyOf": [{"type": "integer"}, closed(a={"type": "null"})]}),
    ("oneOf", {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}),
    ("oneOf, told apart", {"oneOf": [closed(k={"const": "a"}), closed(k={"const": "b"}, x={"type": "integer"})]}),
    ("allOf", {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 8}]}),
    (
        "allOf of objects",
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]},
            ],
            "maxProperties": 2,
        },
    ),
    ("reference", {"$defs": {"s": SHORT}, **closed(a={"$ref": "#/$defs/s"}, b={"$ref": "#/$defs/s"})}),
    ("reference and more", {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 4, "maximum": 6}),
    ("reference by anchor", {"$defs": {"n": {"$anchor": "here", "type": "null"}}, **closed(a={"$ref": "#here"})}),
    ("reference by id", {"$defs": {"n": {"$id": "urn:x:n", "type": "null"}}, **closed(a={"$ref": "urn:x:n"})}),
    ("reference with escapes", {"$defs": {"a/b~c d": SHORT}, **closed(a={"$ref": "#/$defs/a~1b~0c%20d"})}),
    ("reference to a property", {**closed(a={"type": "integer"}, b={"$ref": "#/properties/a"})}),
    ("recursion at the root", TREE),
    ("recursion in arrays", LIST),
    ("annotations", PERSON),
    ("true in properties", closed(a=True)),
    ("x-guidance of the client's", {**closed(a={"type": "null"}), "x-guidance": {"lenient": True}}),
    ("then without if", {"type": "integer", "then": {"minimum": 3}, "maximum": 5}),
    ("keys of others", {"type": "integer", "x-order": 1}),
    ("deep", closed(a=closed(b=closed(c=closed(d={"type": "array", "items": closed(e=SHORT), "maxItems": 1}))))),
]
