"""Lists cases for items, prefixItems, minItems, maxItems, additionalItems and old tuples."""

from tests.grammar.schemas.cases import DIGIT, DRAFT_7, NULL, SHORT, Case, array, closed


def older(**more: object) -> dict[str, object]:
    return {"$schema": DRAFT_7, "type": "array", **more}


BOOLEAN = {"type": "boolean"}

CASES = [
    Case(
        "array lengths",
        array({"type": "integer", "maximum": 9}, minItems=1, maxItems=3),
        ("[1]", "[1, -2, 3]"),
        ("[]", "[1, 2, 3, 4]", "[10]"),
    ),
    Case("maxItems of zero", array(NULL, maxItems=0), ("[]",), ("[null]",)),
    Case("maxItems", array(NULL, maxItems=2), ("[]", "[null, null]"), ("[null, null, null]",)),
    Case(
        "minItems",
        array(NULL, minItems=2),
        ("[null, null]", "[null, null, null]"),
        ("[null]", "[]"),
    ),
    Case(
        "one number of items",
        array(DIGIT, minItems=3, maxItems=3),
        ("[1, 2, 3]",),
        ("[1, 2]", "[1, 2, 3, 4]"),
    ),
    Case(
        "many items at least",
        array(NULL, minItems=20, maxItems=22),
        (f"[{', '.join(['null'] * 21)}]",),
        ("[null]",),
    ),
    Case(
        "numbers of items as floats", array(NULL, minItems=1.0, maxItems=2.0), ("[null]",), ("[]",)
    ),
    Case(
        "lengths of anything",
        {"type": "array", "minItems": 1, "maxItems": 1},
        ("[1]", '["a"]'),
        ("[]", "[1, 2]"),
    ),
    Case(
        "items without a type",
        {"items": NULL, "type": ["array", "null"]},
        ("[null]", "null"),
        ("[1]",),
    ),
    Case("no items at all", {"type": "array", "items": False}, ("[]",), ("[1]",)),
    Case(
        "items of several types",
        array({"type": ["integer", "string"], "maximum": 5, "maxLength": 1}, maxItems=2),
        ('[1, "a"]',),
        ('["ab"]', "[6]"),
    ),
    Case(
        "items to choose from", array({"enum": ["a", "b"]}, maxItems=2), ('["a", "a"]',), ('["c"]',)
    ),
    Case(
        "items of items",
        array(array(array(NULL, maxItems=1), maxItems=1), maxItems=1),
        ("[[[null]]]", "[[]]"),
        ("[null]",),
    ),
    Case(
        "a matrix",
        array(array(DIGIT, minItems=2, maxItems=2), minItems=2, maxItems=2),
        ("[[1, 2], [3, 4]]",),
        ("[[1], [2]]", "[[1, 2]]"),
    ),
    Case(
        "objects in arrays",
        array(closed(a=NULL), maxItems=2),
        ('[{"a": null}]',),
        ("[{}]", '[{"a": 1}]'),
    ),
    Case(
        "prefixItems",
        array(False, prefixItems=[SHORT, NULL], minItems=2),
        ('["ab", null]',),
        ('["ab"]', '["ab", null, 1]', '[null, "ab"]'),
    ),
    Case(
        "prefixItems that may be missing",
        array(False, prefixItems=[BOOLEAN, NULL]),
        ("[]", "[true]", "[true, null]"),
        ("[null]", "[true, null, 1]"),
    ),
    Case(
        "prefixItems and others",
        array(DIGIT, prefixItems=[NULL], maxItems=3),
        ("[null]", "[null, 1, 2]", "[]"),
        ("[1]", "[null, null]"),
    ),
    Case(
        "prefixItems, open",
        {"type": "array", "prefixItems": [NULL], "maxItems": 2},
        ("[null]", '[null, "x"]'),
        ("[1]", "[null, 1, 2]"),
    ),
    Case(
        "prefixItems, cut",
        {"type": "array", "prefixItems": [NULL, BOOLEAN], "maxItems": 1},
        ("[null]", "[]"),
        ("[null, true]",),
    ),
    Case(
        "prefixItems, all demanded",
        {"type": "array", "prefixItems": [NULL, BOOLEAN], "minItems": 2, "maxItems": 2},
        ("[null, true]",),
        ("[null]",),
    ),
    Case(
        "prefixItems with additionalItems, which is of older drafts",
        {"type": "array", "prefixItems": [NULL], "additionalItems": False, "maxItems": 2},
        ("[null]", "[null, 1]"),
        ("[1]",),
    ),
    Case(
        "a false in prefixItems",
        {"type": "array", "prefixItems": [NULL, False]},
        ("[]", "[null]"),
        ("[null, 1]",),
    ),
    Case(
        "tuples in tuples",
        array(False, prefixItems=[array(False, prefixItems=[NULL, NULL], minItems=2)], minItems=1),
        ("[[null, null]]",),
        ("[null]",),
    ),
    Case(
        "tuple, older form",
        older(items=[BOOLEAN, NULL], additionalItems=False),
        ("[true, null]", "[]"),
        ("[null]", "[true, null, 1]"),
    ),
    Case(
        "tuple, older form, open",
        older(items=[NULL], maxItems=2),
        ("[null, 5]", "[null]"),
        ("[5]",),
    ),
    Case(
        "tuple, older form, with others",
        older(items=[NULL], additionalItems=DIGIT, maxItems=3),
        ("[null, 5]",),
        ("[5]", "[null, null]"),
    ),
    Case(
        "tuple, older form, of one length",
        older(items=[NULL, DIGIT], minItems=2, maxItems=2),
        ("[null, 5]",),
        ("[null]",),
    ),
    Case(
        "additionalItems beside one schema",
        older(items=NULL, additionalItems=False, maxItems=2),
        ("[null, null]",),
        ("[1]",),
    ),
    Case(
        "uniqueItems false", array(NULL, uniqueItems=False, maxItems=2), ("[null, null]",), ("[1]",)
    ),
    Case(
        "contains that asks for nothing",
        array(DIGIT, contains={"const": 3}, minContains=0, maxItems=2),
        ("[1]", "[3]"),
        ("[10]",),
    ),
    Case(
        "minContains alone",
        array(NULL, minContains=3, maxContains=1, maxItems=1),
        ("[null]",),
        ("[1]",),
    ),
    Case(
        "unevaluatedItems true",
        array(NULL, unevaluatedItems=True, maxItems=1),
        ("[null]",),
        ("[1]",),
    ),
]
