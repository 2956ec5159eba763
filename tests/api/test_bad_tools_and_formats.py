"""An error about tools or formats of the output names the field, the limit and the value."""

import httpx
import pytest

from tests.api.test_bad_input import TOOL, check_wrong_field


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"tools": [{"type": "function"}]}, "tools[0].function", "tools[0].function is required"),
        (
            {"tools": [{"type": "mcp"}]},
            "tools[0].type",
            'tools[0].type must be one of "function", "custom", given "mcp"',
        ),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "tools[0].name must"),
        ({"tools": [TOOL, TOOL]}, "tools[1].function.name", "must be unique, given 'look' again"),
        ({"tools": [TOOL]}, "tools", "this model's chat template has no tools"),
        ({"tool_choice": "required"}, "tool_choice", "tool_choice needs tools"),
        (
            {"tool_choice": "always"},
            "tool_choice",
            'tool_choice must be one of "auto", "none", "required"',
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "leap"}}},
            "tool_choice",
            "tool_choice must name one of the tools, given 'leap'",
        ),
        (
            {"functions": [{"name": "f"}], "tools": []},
            "functions",
            "must not be given beside tools",
        ),
        ({"response_format": {}}, "response_format.type", "response_format.type is required"),
        (
            {"response_format": {"type": "text", "schema": {}}},
            "response_format.schema",
            "not a field of this object",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {}, "style": 1},
                }
            },
            "response_format.json_schema.style",
            "response_format.json_schema.style is not a field of this object, given 1",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {}, "strict": "yes"},
                }
            },
            "response_format.json_schema.strict",
            'must be true or false, given "yes"',
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto"}},
            "tool_choice.type",
            'must be one of "function", "custom", "mcp", ',
        ),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "parameters": {"type": "string"}},
                    }
                ]
            },
            "tools[0].function.parameters.type",
            'must be "object", given "string"',
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "strict": True},
                }
            },
            "response_format.json_schema.schema",
            "response_format.json_schema.schema is required",
        ),
        ({"response_format": {"type": "yaml"}}, "response_format", "given 'yaml'"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "text"}},
                }
            },
            "response_format.json_schema.schema",
            "text",
        ),
        (
            {"guided_regex": "a", "guided_choice": ["a"]},
            "guided_choice",
            "guided_choice must not be given beside guided_regex",
        ),
        ({"structured_outputs": {}}, "structured_outputs", "must have exactly one of json, regex"),
        ({"guided_json": "{"}, "guided_json", "guided_json is not valid JSON"),
        ({"guided_regex": "(", "num_beams": 1}, "guided_regex", "guided_regex"),
    ],
)
def test_a_wrong_tool_or_format_is_named(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    check_wrong_field(http, fields, param, message)
