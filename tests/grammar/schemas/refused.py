"""Lists schemas that are refused for a keyword, format, pattern or reference, with messages."""

from tests.grammar.schemas.cases import NULL, STRICT, Refused, array, closed, closed_object

STRING = {"type": "string"}


def keyword(name: str, value: object, **beside: object) -> Refused:
    return Refused(
        f"{name}: {value}"[:60],
        {name: value, **beside},
        rf"keyword '{name.replace('$', '.')}' at #",
    )


def within(name: str, value: object) -> list[Refused]:
    """Returns the keyword in each place where a schema may stand."""
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

CASES = [*KEYWORDS, *FORMATS, *PATTERNS, *REFERENCES, *ONE_OF, *STRICTLY]
