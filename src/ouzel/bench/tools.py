"""Defines the functions of the workload `tools`, with parameters that are typical of agents."""

from collections.abc import Sequence
from typing import Any  # JSON schemas

from ouzel.bench.conversation import JsonObject


def _function(
    name: str, description: str, properties: dict[str, Any], required: Sequence[str]
) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


FUNCTIONS: tuple[JsonObject, ...] = (
    _function(
        "get_weather",
        "Tells the weather of a place now, or of one of the next days.",
        {
            "city": {"type": "string", "description": "The name of the place."},
            "day": {
                "type": "integer",
                "minimum": 0,
                "maximum": 7,
                "description": "Days from today.",
            },
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        ["city"],
    ),
    _function(
        "search_documents",
        "Finds passages in the company's documents.",
        {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20},
            "kinds": {
                "type": "array",
                "items": {"type": "string", "enum": ["mail", "page", "ticket"]},
            },
        },
        ["query"],
    ),
    _function(
        "create_event",
        "Writes an event into the calendar.",
        {
            "title": {"type": "string"},
            "start": {"type": "string", "description": "Date and time, as 2026-01-31T09:00."},
            "minutes": {"type": "integer", "minimum": 5},
            "place": {
                "type": "object",
                "properties": {"building": {"type": "string"}, "room": {"type": "integer"}},
                "required": ["building"],
            },
        },
        ["title", "start"],
    ),
    _function(
        "run_query",
        "Runs a query on the database of orders, and returns its rows.",
        {"sql": {"type": "string"}, "is_dry_run": {"type": "boolean"}},
        ["sql"],
    ),
)
