"""Refers to schemas of the OpenAPI document, which have the names of their structs."""

from ouzel.api.endpoint.operation import StructType

JsonObject = dict[str, object]

REF = "#/components/schemas/{name}"
JSON = "application/json"


def schema_ref(struct: StructType) -> JsonObject:
    return named_ref(struct.__name__)


def named_ref(name: str) -> JsonObject:
    return {"$ref": REF.format(name=name)}
