"""Sorts the keywords of JSON Schema: honoured, without meaning, or refused."""

from collections.abc import Callable, Mapping

from ouzel.grammar.schema.values import CHECKS

COMBINING = frozenset(("allOf", "anyOf", "oneOf", "$ref"))
ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "example", "$comment"),
        *("deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType", "contentSchema", "x-guidance"),
        # keywords of OpenAPI, which must not change the valid values
        *("discriminator", "xml", "externalDocs"),
        # no longer needed once references are resolved
        *("$schema", "$vocabulary", "$id", "id", "$anchor", "$defs", "definitions"),
    )
)

WITHOUT_EFFECT: dict[str, Callable[[object, Mapping[str, object]], bool]] = {
    "uniqueItems": lambda value, _: value is False,
    "then": lambda _, schema: "if" not in schema,
    "else": lambda _, schema: "if" not in schema,
    "if": lambda _, schema: "then" not in schema and "else" not in schema,
    "minContains": lambda value, schema: "contains" not in schema or value == 0,
    "maxContains": lambda _, schema: "contains" not in schema,
    "contains": lambda _, schema: schema.get("minContains") == 0 and "maxContains" not in schema,
    "not": lambda value, _: value is False,
    "propertyNames": lambda value, _: value is True or value == {},
    "unevaluatedItems": lambda value, _: value is True or value == {},
    "unevaluatedProperties": lambda value, _: value is True or value == {},
    "dependentRequired": lambda value, _: value == {},
    "dependentSchemas": lambda value, _: value == {},
    "dependencies": lambda value, _: value == {},
    "$dynamicRef": lambda _, __: False,
    "$dynamicAnchor": lambda _, __: True,
    "$recursiveRef": lambda _, __: False,
    "$recursiveAnchor": lambda _, __: True,
}

HONOURED = frozenset(CHECKS) | {
    *("$ref", "format", "properties", "patternProperties", "additionalProperties"),
    *("items", "prefixItems", "additionalItems", "anyOf", "oneOf", "allOf"),
}

REFUSED = frozenset(WITHOUT_EFFECT) - {"$dynamicAnchor", "$recursiveAnchor"}
"""Refused wherever they have a meaning.

Documents about schemas can be checked against the two sets.
"""
