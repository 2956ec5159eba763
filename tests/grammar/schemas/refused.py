"""Schemas that are refused, each with what its refusal says."""

from tests.grammar.schemas.cases import NULL, PLAIN, STRICT, Refused, array, closed, closed_object

STRING = {"type": "string"}


def keyword(name: str, value: object, **beside: object) -> Refused:
    return Refused(
        f"{name}: {value}"[:60],
        {name: value, **beside},
        rf"keyword '{name.replace('$', '.')}' at #",
    )


def within(name: str, value: object) -> list[Refused]:
    """A keyword in each place where a schema may stand."""
    bad, said = {name: value}, f"keyword '{name}' at #/"
    places: dict[str, object] = {
        "properties": {"properties": {"a": bad}},
        "items": {"items": bad},
        "prefixItems": {"prefixItems": [NULL, bad]},
        "anyOf": {"anyOf": [NULL, bad]},
        "allOf": {"allOf": [bad]},
        "oneOf": {"oneOf": [bad]},
        "additionalProperties": {"additionalProperties": bad},
        "patternProperties": {"patternProperties": {"^a": bad}},
        "additionalItems": {"items": [NULL], "additionalItems": bad},
        "$defs": {"$defs": {"x": bad}, "$ref": "#/$defs/x"},
    }
    return [Refused(f"{name} in {place}", schema, said) for place, schema in places.items()]


KEYWORDS = [
    keyword("not", {}),
    keyword("not", {"type": "null"}, type="string"),
    keyword("not", True),
    keyword("if", {"type": "string"}, then={"minLength": 1}),
    keyword("if", True, **{"else": False}),
    keyword("contains", {"const": 1}),
    keyword("contains", True, minContains=2),
    keyword("contains", {}, minContains=0, maxContains=3),
    keyword("uniqueItems", True, type="array"),
    keyword("unevaluatedProperties", False, type="object"),
    keyword("unevaluatedProperties", {"type": "string"}),
    keyword("unevaluatedItems", False),
    keyword("propertyNames", {"pattern": "^a"}),
    keyword("propertyNames", {"maxLength": 3}),
    keyword("propertyNames", False),
    keyword("dependentRequired", {"a": ["b"]}),
    keyword("dependentSchemas", {"a": {"required": ["b"]}}),
    keyword("dependencies", {"a": ["b"]}),
    keyword("dependencies", {"a": {"required": ["b"]}}),
    keyword("$dynamicRef", "#node"),
    keyword("$recursiveRef", "#"),
    *within("not", {}),
    *within("uniqueItems", True),
]

FORMATS = [
    Refused(
        f"format {name}",
        {"type": "string", "format": name},
        f"#/format must be one of .*given '{name}'",
    )
    for name in (
        *("idn-email", "idn-hostname", "uri-reference", "iri", "iri-reference", "uri-template"),
        *("json-pointer", "relative-json-pointer", "regex", "byte", "binary", "phone", "DATE", ""),
    )
] + [
    Refused(
        "format int32 of a number",
        {"type": "number", "format": "int32"},
        "#/format 'int32' must stand beside",
    ),
    Refused("format of no string", {"format": 1}, "#/format must be a string"),
]

PATTERNS = [
    Refused(f"pattern {pattern}", {"type": "string", "pattern": pattern}, f"#/pattern has .*{said}")
    for pattern, said in (
        ("(?=a)b", "look-around"),
        ("(?!a)b", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", "look-around"),
        (r"\bword\b", "word boundary"),
        (r"\Bx", "word boundary"),
        (r"(a)\1", "back reference"),
        (r"(?<n>a)\k<n>", "back reference"),
        ("(a", "group without an end"),
        ("a)", "group without a beginning"),
        ("[a", "character class without an end"),
        ("[]", "character class"),
        ("a\\", "backslash"),
        (r"\cA", "escape"),
        ("(?i)a", "group"),
    )
] + [
    Refused("pattern of no string", {"pattern": 1}, "#/pattern must be a string"),
    Refused(
        "pattern with an anchor in the middle",
        {"type": "string", "pattern": "a^b"},
        "regex /a\\^b/",
    ),
    Refused(
        "patternProperties with look-around",
        {"patternProperties": {"(?!a)": {}}},
        "#/patternProperties has look-around",
    ),
    Refused(
        "patternProperties in two spellings",
        {"patternProperties": {"^a+": NULL, "^a+?": STRING}},
        "#/patternProperties has .* twice",
    ),
    Refused(
        "patternProperties that overlap",
        {"type": "object", "patternProperties": {"^a": NULL, "b$": STRING}},
        "patternPropert",
    ),
]

REFERENCES = [
    Refused(
        "a missing definition",
        {"$ref": "#/$defs/x"},
        r"\$ref refers to '#/.defs/x', which is not in the schema",
    ),
    Refused(
        "a remote reference",
        {"$ref": "https://example.org/schema.json"},
        r"\$ref refers to 'https://example.org/schema.json'",
    ),
    Refused("a file", {"$ref": "other.json#/a"}, r"\$ref refers to 'other.json#/a'"),
    Refused("a missing anchor", {"$ref": "#there"}, r"\$ref refers to '#there'"),
    Refused(
        "an index out of range", {"anyOf": [{"$ref": "#/anyOf/9"}]}, r"\$ref refers to '#/anyOf/9'"
    ),
    Refused(
        "a reference to what is no schema",
        {"$ref": "#/x-a", "x-a": 1},
        "schema at #/x-a must be an object or a boolean",
    ),
    Refused("a reference of no string", {"$ref": 1}, r"#/\$ref must be a string"),
    Refused("a reference to itself", {"$ref": "#"}, r"\$ref leads only back to itself"),
    Refused(
        "references in a circle",
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        r"\$ref leads only back to itself",
    ),
    *(
        Refused(
            f"recursion without an end, {name}",
            schema,
            r"\$ref leads only back to itself, so that no value",
        )
        for name, schema in {
            "by a property": closed(next={"$ref": "#"}),
            "by two": {
                "$defs": {
                    "a": closed(b={"$ref": "#/$defs/b"}),
                    "b": closed(a={"$ref": "#/$defs/a"}),
                },
                "$ref": "#/$defs/a",
            },
            "by items": array({"$ref": "#"}, minItems=1),
            "by the first item": {"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1},
            "by all options": {"anyOf": [closed(a={"$ref": "#"}), closed(b={"$ref": "#"})]},
            "by allOf": {
                "type": "object",
                "allOf": [
                    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
                ],
            },
            "by other names": {
                "type": "object",
                "required": ["a"],
                "additionalProperties": {"$ref": "#"},
            },
            "where it need not be": {
                "$defs": {"n": closed(next={"$ref": "#/$defs/n"})},
                **closed_object({"n": {"$ref": "#/$defs/n"}}, "n"),
            },
        }.items()
    ),
    Refused(
        "references without an end",
        {
            "$defs": {str(n): array({"$ref": f"#/$defs/{n + 1}"}) for n in range(250)}
            | {"250": {}},
            "$ref": "#/$defs/0",
        },
        "references within references must be <= 200",
    ),
]

ONE_OF = [
    Refused(f"oneOf, {name}", {"oneOf": options}, "oneOf")
    for name, options in {
        "integer and number": [{"type": "integer"}, {"type": "number"}],
        "either of two required": [{"required": ["a"]}, {"required": ["b"]}],
        "enums that overlap": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}],
        "optional constants": [{"type": "object", "properties": {"k": {"const": c}}} for c in "ab"],
        "lists that may be empty": [array(NULL), array(STRING)],
        "the same twice": [NULL, NULL],
        "patterns": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}],
        "null in both": [{"type": ["integer", "null"]}, {"type": ["string", "null"]}],
        "optional discriminators by reference": [
            {"$ref": "#/oneOf/1"},
            closed_object({"k": {"const": "a"}}, "k"),
        ],
        "open objects with different requirements": [
            {"type": "object", "required": [name], "additionalProperties": True} for name in "ab"
        ],
        "1 and 1.0": [{"const": 1}, {"const": 1.0}],
        "a constant within a type": [{"const": "a"}, {"type": "string", "minLength": 1}],
    }.items()
]

UNSATISFIABLE = [
    Refused("nothing: false", False, "the schema false admits nothing"),
    *(
        Refused(f"nothing: {name}", schema, "(?i)unsatisfiable")
        for name, schema in {
            "minimum above maximum": {"type": "integer", "minimum": 3, "maximum": 2},
            "no integer between": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
            "an empty interval": {"type": "number", "exclusiveMinimum": 3, "maximum": 3},
            "no multiple": {"type": "integer", "multipleOf": 10, "minimum": 1, "maximum": 9},
            "minLength above maxLength": {"type": "string", "minLength": 3, "maxLength": 2},
            "minItems above maxItems": {"type": "array", "minItems": 3, "maxItems": 2},
            "minProperties above maxProperties": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 0,
            },
            "items false and minItems": {"type": "array", "items": False, "minItems": 1},
            "required, but false": {
                "type": "object",
                "properties": {"a": False},
                "required": ["a"],
            },
            "required, but closed": {
                "type": "object",
                "required": ["a"],
                "additionalProperties": False,
            },
            "types that exclude each other": {"allOf": [{"type": "integer"}, {"type": "string"}]},
            "allOf with false": {"allOf": [{"type": "integer"}, False]},
            "anyOf of false": {"anyOf": [False, False]},
            "const of another type": {"type": "string", "const": 1},
            "const out of bounds": {"const": 1, "minimum": 2},
            "const and enum": {"const": "a", "enum": ["b"]},
            "enum of another type": {"type": "boolean", "enum": ["a"]},
            "enum and length": {"enum": ["abc"], "minLength": 4},
            "pattern and length": {"type": "string", "pattern": "^a{5}$", "maxLength": 2},
            "pattern and format": {"type": "string", "format": "ipv4", "pattern": "^[a-z]+$"},
            "two formats": {"type": "string", "allOf": [{"format": "uuid"}, {"format": "ipv4"}]},
        }.items()
    ),
]

SHAPES = [
    Refused(
        f"{name}: {value!r}"[:70],
        {name: value},
        rf"#/{name.replace('$', '.')}\b.* must|schema at #/{name} must",
    )
    for name, value in (
        ("type", "strin"),
        ("type", 1),
        ("type", []),
        ("type", ["string", None]),
        ("type", "any"),
        ("enum", []),
        ("enum", "a"),
        ("required", "a"),
        ("required", [1]),
        ("required", True),
        ("properties", []),
        ("properties", {"a": 1}),
        ("properties", {"a": "string"}),
        ("patternProperties", [1]),
        ("additionalProperties", "no"),
        ("additionalProperties", None),
        ("items", 1),
        ("items", []),
        ("prefixItems", {}),
        ("prefixItems", []),
        ("anyOf", {}),
        ("anyOf", []),
        ("allOf", []),
        ("oneOf", [1]),
        ("minimum", "1"),
        ("minimum", None),
        ("maximum", True),
        ("exclusiveMinimum", True),
        ("exclusiveMaximum", "1"),
        ("multipleOf", 0),
        ("multipleOf", -1),
        ("multipleOf", "2"),
        ("minLength", -1),
        ("minLength", 1.5),
        ("maxLength", "5"),
        ("maxLength", True),
        ("minItems", -1),
        ("maxItems", None),
        ("minProperties", "1"),
        ("maxProperties", -1),
    )
] + [
    Refused("no schema: a list", [], "the schema at # must be an object or a boolean"),
    Refused("no schema: null", None, "the schema at # must be an object or a boolean"),
    Refused("no schema: a number", 3, "the schema at # must be an object or a boolean"),
]

INEXACT = [
    Refused(
        "minimum above the engine's integers",
        {"type": "integer", "minimum": 2**63},
        "#/minimum must be a number",
    ),
    Refused(
        "maximum below the engine's integers", {"maximum": -(2**70)}, "#/maximum must be a number"
    ),
    Refused(
        "minimum that would be rounded",
        {"type": "integer", "minimum": 2**53 + 1},
        "#/minimum must be a number",
    ),
    Refused(
        "exclusiveMaximum that is too tiny",
        {"exclusiveMaximum": 1e-300},
        "#/exclusiveMaximum must be a number",
    ),
    Refused("const that would be rounded", {"const": 2**53 + 1}, "#/const must be a number"),
    Refused("const of 64 bits", {"const": 2**64}, "#/const must be a number"),
    Refused("const that is huge", {"const": 1e300}, "#/const must be a number"),
    Refused("const with 17 digits", {"const": [123456789.12345679]}, "#/const must be a number"),
    Refused("enum that would be rounded", {"enum": [1, 2**53 + 1]}, "#/enum/1 must be a number"),
    Refused(
        "multipleOf that would be rounded",
        {"multipleOf": 2**53 + 1},
        "#/multipleOf must be a number",
    ),
    Refused("multipleOf that is huge", {"multipleOf": 1e20}, "#/multipleOf must be a number"),
    Refused("multipleOf that is tiny", {"multipleOf": 1e-30}, "#/multipleOf must be a number"),
    Refused(
        "const with a control character",
        {"const": "a\u0001"},
        "#/const must have no control characters",
    ),
    Refused(
        "const with a control character in a key",
        {"const": {"\u007f": 1}},
        "#/const must have no control characters",
    ),
    Refused(
        "minProperties of unknown names",
        {"type": "object", "minProperties": 2},
        "#/minProperties must be <= 1",
    ),
    Refused(
        "minProperties beyond the required",
        {"type": "object", "required": ["a"], "minProperties": 3},
        "#/minProperties must be <= 2",
    ),
    Refused(
        "minProperties beside open names",
        {"type": "object", "properties": {"a": NULL}, "minProperties": 1},
        "min/maxProperties",
        PLAIN,
    ),
    Refused(
        "maxProperties beside optional names",
        closed_object({"a": NULL, "b": NULL, "c": NULL}, "a", "b", "c") | {"maxProperties": 2},
        "min/maxProperties",
    ),
]

TOO_LARGE = [
    Refused("a long const", {"const": "x" * 10_300}, "#/const must be <= 10240, given 10302"),
    Refused("a long enum", {"enum": list(range(10_001))}, "#/enum must be <= 10000, given 10001"),
    Refused(
        "long enums",
        closed(a={"enum": list(range(6000))}, b={"enum": list(range(6000))}),
        "enum values of the schema must be <= 10000",
    ),
    Refused(
        "too many properties",
        {"properties": {str(n): True for n in range(1001)}},
        "properties must be <= 1000, given 1001",
    ),
    Refused(
        "many properties in all",
        closed_object(
            {str(n): closed_object({str(m): NULL for m in range(900)}) for n in range(6)}
        ),
        "properties of the schema must be <= 5000",
    ),
    Refused("a long pattern", {"pattern": "a" * 10_241}, "#/pattern must be <= 10240"),
    Refused(
        "a long name",
        {"properties": {"x" * 10_241: NULL}},
        "a name at #/properties must be <= 10240",
    ),
    Refused(
        "a long schema",
        {"description": "x" * 300_000},
        "characters of the format must be <= 262144",
    ),
]


def _nested(levels: int) -> object:
    schema: object = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


TOO_LARGE.append(Refused("a deep schema", _nested(200), "nesting of the format must be <= 100"))

STRICTLY = [
    Refused(
        f"strict, {name}",
        {name: value},
        f"keyword '{name}' at # is not supported in strict mode",
        STRICT,
    )
    for name, value in (
        ("requried", ["a"]),
        ("nullable", True),
        ("propertyOrdering", ["a"]),
        ("Type", "string"),
    )
]

CASES = [
    *KEYWORDS,
    *FORMATS,
    *PATTERNS,
    *REFERENCES,
    *ONE_OF,
    *UNSATISFIABLE,
    *SHAPES,
    *INEXACT,
    *TOO_LARGE,
    *STRICTLY,
]
