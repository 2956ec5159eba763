"""Writes the OpenAPI 3.1 document from the table of operations and the wire structs."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from ouzel import __version__
from ouzel.api.document.error_responses import (
    ALL_ERRORS,
    list_errors,
    lmi_error_responses,
    make_error_refs,
    name_error_responses,
)
from ouzel.api.document.field_defaults import describe_default
from ouzel.api.document.schema_refs import JSON, REF, JsonObject, named_ref, schema_ref
from ouzel.api.endpoint.operation import Operation, StructType, Words
from ouzel.api.lmi.standard import Parameters, StandardRequest
from ouzel.api.ollama.model_name import list_names
from ouzel.wire.aliases import select_aliases

_LMIS = ("lmi", "sagemaker")  # dialects with LMI's bodies
_LMI_TEXTS = ("text/plain", "text/csv")  # other types of LMI's bodies
_JSON_LINES: Mapping[Words, str] = {
    "lmi": "application/jsonlines",
    "sagemaker": "application/jsonlines",
    "ollama": "application/x-ndjson",
}
_ANY = "Any JSON value"
# prefix for the names of bodies that accept any model
_LMI_PREFIX = "Lmi"
# bodies with exactly one of these fields
_ONE_OF = {"TokenizeRequest": ("text", "prompt", "messages")}
_DESCRIPTION = (
    "Every path below /v1 also exists below /v3 and /v3/v1; tokenize, detokenize, score and rerank "
    "also exist at the root. A field that this document does not name is ignored, except known "
    "fields of other servers that are not supported: these are refused with 400. Numbers may also "
    "be given as 1.0 for an integer or as a number in a string. The server's options set the real "
    "limits of n, top_logprobs and lengths. With --profile ovms an error is one string."
)


def build_document(
    operations: Sequence[Operation], *, root_path: str = "", model_names: Sequence[str] = ()
) -> JsonObject:
    """Returns the document. `root_path` is the prefix of all paths at a proxy.

    Without `model_names` a model is any string.
    """
    paths: dict[str, JsonObject] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _operation_object(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ouzel", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": root_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": _answer_schemas(operations) | body_schemas(operations, model_names),
            "responses": name_error_responses(),
            "securitySchemes": {"api_key": {"type": "http", "scheme": "bearer"}},
        },
        # if the server has keys, every path but /health needs one
        "security": [{}, {"api_key": []}],
    }


def body_schemas(
    operations: Sequence[Operation], model_names: Sequence[str] = ()
) -> dict[str, JsonObject]:
    """Returns the schemas of bodies and their parts by name, with LMI's versions of some."""
    lmi_bodies = _list_bodies([operation for operation in operations if operation.words in _LMIS])
    ollama_bodies = {
        body.__name__ for each in operations if each.words == "ollama" for body in each.bodies
    }
    # bodies that name models of other servers too
    changing_bodies = {
        body.__name__ for each in operations if each.changing is not None for body in each.bodies
    }
    bodies: list[StructType] = [*_list_bodies(operations), Parameters]
    schemas = _components(bodies)
    for name, schema in schemas.items():
        _explain_fields(schema)
        if model_names and name not in changing_bodies:
            _name_models(schema, list_names(model_names) if name in ollama_bodies else model_names)
        if name in _ONE_OF:
            schema["oneOf"] = [_require_field(field) for field in _ONE_OF[name]]
    for body in bodies:
        _add_aliases(schemas[body.__name__], body)
    standard = schemas[StandardRequest.__name__]["properties"]
    assert isinstance(standard, dict)
    # two decoders in the code are one object in the document
    standard["parameters"] |= {"anyOf": [schema_ref(Parameters), {"type": "null"}]}
    schemas[Parameters.__name__] = _accept_any_model(schemas[Parameters.__name__])
    for body in lmi_bodies:
        schemas[_LMI_PREFIX + body.__name__] = _accept_any_model(schemas[body.__name__])
    return schemas


def _name_models(schema: JsonObject, model_names: Sequence[str]) -> None:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    field = properties.get("model")
    for kind in () if field is None else field.get("anyOf", [field]):
        if kind.get("type") == "string":
            kind["enum"] = [*model_names, ""]  # an empty name means no name


def _require_field(field: str) -> JsonObject:
    """Returns the schema of an object that has a field. A null field is absent."""
    return {"required": [field], "properties": {field: {"not": {"type": "null"}}}}


def _list_bodies(operations: Sequence[Operation]) -> list[StructType]:
    bodies = [body for operation in operations for body in operation.bodies]
    forms = [operation.form_body for operation in operations if operation.form_body is not None]
    return list(dict.fromkeys([*bodies, *forms]))


def _accept_any_model(schema: JsonObject) -> JsonObject:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    if "model" not in properties:
        return schema
    any_name = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    model = (
        properties["model"]
        | any_name
        | {"description": "Any name: it never chooses, as in LMI. Default: none."}
    )
    return schema | {"properties": properties | {"model": model}}


def _answer_schemas(operations: Sequence[Operation]) -> dict[str, JsonObject]:
    answers = [kind for operation in operations for kind in (*operation.answers, *operation.chunks)]
    return _components([*answers, *ALL_ERRORS])


def _components(kinds: Sequence[object]) -> dict[str, JsonObject]:
    _, schemas = msgspec.json.schema_components(kinds, schema_hook=_any_value, ref_template=REF)
    for schema in schemas.values():
        _drop_titles(schema)
    return schemas


def _drop_titles(schema: object) -> None:
    """Removes the title "Any JSON value" from schemas with a shape."""
    if isinstance(schema, dict):
        if (
            schema.get("title") == _ANY
            and len(schema.keys() - {"description", "default", "title"}) > 0
        ):
            del schema["title"]
        for inner in schema.values():
            _drop_titles(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _drop_titles(inner)


def _any_value(kind: type) -> JsonObject:
    if kind is not object:
        raise NotImplementedError
    return {"title": _ANY}


def _explain_fields(schema: JsonObject) -> None:
    """Moves description and default to the top of each field.

    A default of null, which msgspec writes too, only means that the field may be absent.
    """
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name, field in properties.items():
        if "default" not in field:
            continue  # the field is required
        own_default = field.pop("default")
        kinds = field.get("anyOf", [])
        inner = [description for kind in kinds if (description := kind.pop("description", None))]
        default = describe_default(
            name, is_boolean=kinds == [{"type": "boolean"}, {"type": "null"}]
        )
        if own_default is True:
            default = "true"
        elif isinstance(own_default, int | float) and own_default is not False:
            default = str(own_default)
        description = field.get("description") or " ".join(inner[:1])
        field["description"] = f"{description} Default: {default}.".lstrip()


def _add_aliases(schema: JsonObject, body: StructType) -> None:
    """Adds the aliases of fields, which are renamed before a body is decoded."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for alias, name in select_aliases(body.__struct_encode_fields__).items():
        properties[alias] = properties[name] | {
            "description": f"The same as {name}. Default: none."
        }


def _operation_object(operation: Operation) -> JsonObject:
    described: JsonObject = {"summary": operation.summary, "responses": _list_responses(operation)}
    names = re.findall(r"\{(\w+)\}", operation.path)
    parameters: list[JsonObject] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    parameters += [
        {
            "name": field.name,
            "in": "query",
            "description": field.description,
            "schema": field.schema,
        }
        for field in operation.query
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.bodies:
        prefix = _LMI_PREFIX if operation.words in _LMIS else ""
        schema = _join_schemas([named_ref(prefix + body.__name__) for body in operation.bodies])
        content: JsonObject = {JSON: {"schema": schema}}
        if operation.words in _LMIS:
            content |= {media_type: {"schema": {"type": "string"}} for media_type in _LMI_TEXTS}
        described["requestBody"] = {"required": True, "content": content}
    schema_of_form = operation.form
    if operation.form_body is not None:
        schema_of_form = schema_ref(operation.form_body)
    if schema_of_form is not None:
        form: JsonObject = {"multipart/form-data": {"schema": dict(schema_of_form)}}
        described["requestBody"] = {"required": True, "content": form}
    return described


def _list_responses(operation: Operation) -> JsonObject:
    return _file_responses(operation) if operation.file_types else _responses(operation)


def _responses(operation: Operation) -> JsonObject:
    if operation.is_probe and not operation.answers:
        missing = {"404": {"$ref": "#/components/responses/404"}} if "{" in operation.path else {}
        return {"200": {"description": "Yes."}, "503": {"description": "Not now."}, **missing}
    if operation.is_refused:
        return make_error_refs(operation)
    if not operation.answers:
        text: JsonObject = {operation.media_type: {"schema": {"type": "string"}}}
        responses: JsonObject = {"200": {"description": "The answer.", "content": text}}
        return responses | make_error_refs(operation) if operation.bodies else responses
    schemas, _ = msgspec.json.schema_components(
        operation.answers, schema_hook=_any_value, ref_template=REF
    )
    content: JsonObject = {JSON: {"schema": _join_schemas(list(schemas))}}
    if operation.chunks and operation.words != "ollama":
        content["text/event-stream"] = {"schema": _event(operation)}
    if operation.chunks and operation.words in _JSON_LINES:
        lines = {"type": "string", "description": "One such object a line."}
        content[_JSON_LINES[operation.words]] = {"schema": lines}
    if operation.form_body is not None:  # the field response_format chooses
        content["text/plain"] = {"schema": {"type": "string"}}
    if operation.has_page:
        content["text/html"] = {"schema": {"type": "string"}}
    responses = {"200": {"description": "The answer.", "content": content}}
    if operation.is_probe:
        return responses | {"503": {"description": "Not now.", "content": content}}
    if operation.words == "lmi":
        return responses | lmi_error_responses()
    return responses | make_error_refs(operation)


def _file_responses(operation: Operation) -> JsonObject:
    """Returns the responses of an operation that answers with a file or a stream of events."""
    file: JsonObject = {"type": "string", "format": "binary"}
    content: JsonObject = {media_type: {"schema": file} for media_type in operation.file_types}
    if operation.chunks:
        content["text/event-stream"] = {"schema": _event(operation)}
    responses: JsonObject = {"200": {"description": "The answer.", "content": content}}
    return responses | make_error_refs(operation)


def _event(operation: Operation) -> JsonObject:
    """Returns the schema of each event of a stream.

    OpenAPI 3.1 has no keyword for one event; by custom the schema describes each event.
    """
    data = {
        "type": "string",
        "if": {"const": "[DONE]"},  # the last event, unless the stream ended with an error
        "else": {
            "contentMediaType": JSON,
            "contentSchema": _join_schemas(
                [schema_ref(kind) for kind in (*operation.chunks, *list_errors(operation.words))]
            ),
        },
    }
    return {
        "description": "With stream: each of the server-sent events.",
        "type": "object",
        "required": ["data"],
        "properties": {"data": data},
    }


def _join_schemas(schemas: list[JsonObject]) -> JsonObject:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
