"""Checks an InferencePool of the Gateway API Inference Extension for wrong fields.

The fields follow the public types of inference.networking.k8s.io/v1; no package of a registry has
a schema.
"""

from collections.abc import Iterator
from typing import Any  # YAML

import jsonschema

_PORT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["number"],
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 65535}},
}
_NAME = {"type": "string", "minLength": 1, "maxLength": 253}
_PICKER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "group": {"type": "string"},
        "kind": {"type": "string"},
        "name": _NAME,
        "port": _PORT,
        "failureMode": {"enum": ["FailOpen", "FailClose"]},
    },
}
_SELECTOR = {
    "type": "object",
    "additionalProperties": False,
    "required": ["matchLabels"],
    "properties": {
        "matchLabels": {
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": 63},
        }
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "inference.networking.k8s.io/v1"},
        "kind": {"const": "InferencePool"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["selector", "targetPorts", "endpointPickerRef"],
            "properties": {
                "selector": _SELECTOR,
                "targetPorts": {"type": "array", "minItems": 1, "maxItems": 8, "items": _PORT},
                "appProtocol": {"type": "string"},
                "endpointPickerRef": _PICKER,
            },
        },
    },
}


def complaints(pool: dict[str, Any]) -> Iterator[str]:
    for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(pool):
        yield f"InferencePool: {error.json_path} {error.message}"
