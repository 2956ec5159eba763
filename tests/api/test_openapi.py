"""The OpenAPI document and the table of fields are valid, complete and up to date."""

import re
from collections.abc import Iterator
from typing import Any  # JSON Schema

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from ouzel.api.document.field_defaults import describe_default
from ouzel.api.document.openapi import body_schemas, build_document
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.openai import model_loading
from ouzel.api.operations import DOCUMENTED, OPERATIONS, build_routes
from ouzel.api.ovms.status import RELOAD_PATH
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.prompts.shaped_messages import COMMON_ROLES
from ouzel.wire.message_schema import ROLES
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import RunningServer
from tools.documents import fields


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/openapi.json", "/v3/openapi.json"])
def test_the_document_is_served(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert response.headers["content-type"] == "application/json"
    assert response.json() == msgspec.to_builtins(
        build_document(DOCUMENTED, model_names=(MODEL, ALIAS))
    )


def test_the_document_is_valid() -> None:
    OpenAPIV31SpecValidator(
        msgspec.to_builtins(build_document(DOCUMENTED, root_path="/a", model_names=("b",)))
    ).validate()


def test_the_models_name_is_a_served_name(http: httpx.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    fields = [schema["properties"]["model"] for schema in schemas.values() if is_body(schema)]
    assert fields
    for field in fields:
        texts = [kind for kind in field.get("anyOf", [field]) if kind["type"] == "string"]
        assert [[name.removesuffix(":latest") for name in kind["enum"]] for kind in texts] in (
            [[MODEL, ALIAS, ""]],
            [[MODEL, ALIAS, MODEL, ALIAS, ""]],  # Ollama's bodies
        )


@pytest.mark.parametrize(
    ("path", "body", "is_taken"),
    [
        ("/v1/completions", {"model": "", "prompt": "a", "max_tokens": 1}, True),
        ("/v1/completions", {"model": "other", "prompt": "a", "max_tokens": 1}, False),
        ("/v1/completions", {"model": f"{MODEL}:latest", "prompt": "a", "max_tokens": 1}, False),
        ("/api/show", {"model": f"{MODEL}:latest"}, True),
        ("/api/show", {"model": ALIAS}, True),
        ("/api/show", {"model": "other"}, False),
        ("/v1/tokenize", {"prompt": "a", "messages": None, "text": None}, True),
        ("/v1/tokenize", {"prompt": "a", "text": "a"}, False),
    ],
)
def test_the_document_accepts_the_same_bodies_as_the_server(
    http: httpx.Client, path: str, body: dict[str, object], is_taken: bool
) -> None:
    document = http.get("/openapi.json").json()
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (
        Draft202012Validator({**schema, "components": document["components"]}).is_valid(body)
        is is_taken
    )
    assert (http.post(path, json=body).status_code == 200) is is_taken


def is_body(schema: dict[str, Any]) -> bool:
    """Tells whether the schema is a request's body: only bodies describe `model` as a choice."""
    model = schema.get("properties", {}).get("model", {})
    return "One of the served model names." in str(model)


def test_no_list_is_of_anything() -> None:
    schemas = msgspec.to_builtins(build_document(DOCUMENTED))
    assert [
        path
        for path, schema in lists_in(schemas, "")
        if not schema.get("items", {}).keys() - {"title"}
    ] == []


def lists_in(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict) and schema.get("type") == "array":
        yield path, schema
    inner = (
        schema.items()
        if isinstance(schema, dict)
        else enumerate(schema)
        if isinstance(schema, list)
        else ()
    )
    for name, each in inner:
        yield from lists_in(each, f"{path}/{name}")


def test_the_documented_roles_are_the_accepted_ones() -> None:
    assert sorted(ROLES) == sorted(COMMON_ROLES)


def test_every_route_is_an_operation(server: RunningServer) -> None:
    catalogue = Catalogue([server.model], LimitsConfig(), ServerConfig(), None)
    routes = build_routes(OPERATIONS, catalogue, ModelChanges(catalogue))
    paths = {re.sub(r":\w+\}", "}", route.path) for route in routes if isinstance(route, Route)}
    described = {operation.path for operation in DOCUMENTED}
    # the paths for operators are not in the document
    for path in paths - described - model_loading.PATHS - {RELOAD_PATH}:
        # the description names the other prefixes
        below_v1 = "/v1" + re.sub(r"^/v[13](/v1)?", "", path)
        is_for_people = path == "/about" or path.startswith("/playground/")
        assert is_for_people or path.endswith("/openapi.json") or below_v1 in described, path
    assert described <= paths


def test_every_field_has_a_description_and_every_optional_one_a_default() -> None:
    for schema in msgspec.to_builtins(body_schemas(DOCUMENTED)).values():
        for name, field in schema["properties"].items():
            if len(field.get("enum", ())) == 1:
                continue  # the tag of a union needs no description
            assert field["description"], name
            assert ("Default: " in field["description"]) == (
                name not in schema.get("required", ())
            ), name


def test_defaults_in_descriptions_equal_the_codes_defaults() -> None:
    assert describe_default("top_p", is_boolean=False) == "1.0"
    assert describe_default("ignore_eos", is_boolean=True) == "false"
    assert describe_default("skip_special_tokens", is_boolean=True) == "true; false in /detokenize"
    assert describe_default("suffix", is_boolean=False) == "none"


def test_the_table_of_fields_is_up_to_date() -> None:
    assert fields.PATH.read_text() == fields.fields_document(), f"renew it: {fields.COMMAND}"
