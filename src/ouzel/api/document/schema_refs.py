"""Schemas of the OpenAPI document are named after their structs, and referred to by these names."""

from ouzel.api.endpoint.operation import StructType

JsonObject = dict[str, object]

REF = "#/components/schemas/{name}"
JSON = "application/json"


def schema_ref(struct: StructType) -> JsonObject:
    return named_ref(struct.__name__)


def named_ref(name: str) -> JsonObject:
    return {"$ref": REF.format(name=name)}
