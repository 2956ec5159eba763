"""Cases that are refused as a whole: no text fits, the structure is wrong, or it is too large."""

from tests.grammar.schemas.cases import NULL, PLAIN, Refused, closed, closed_object

STRING = {"type": "string"}

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

CASES = [*UNSATISFIABLE, *SHAPES, *INEXACT, *TOO_LARGE]
