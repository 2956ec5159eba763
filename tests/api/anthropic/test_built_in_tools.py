"""A request names some tools only by their type.

The prompt describes these tools, and calls come back in the form that their clients read.
"""

import json

import httpx
import pytest

from tests.api.anthropic.exchanges import LOOK, PATH, Json, build_request, last_prompt, read_error

SCREEN = {"display_width_px": 1024, "display_height_px": 768}
# type -> (the tool's name, an input in the form that clients read)
TOOLS: dict[str, tuple[str, Json]] = {
    "bash_20241022": ("bash", {"command": "ls"}),
    "bash_20250124": ("bash", {"command": "", "restart": True}),
    "text_editor_20241022": ("str_replace_editor", {"command": "undo_edit", "path": "/a"}),
    "text_editor_20250124": (
        "str_replace_editor",
        {"command": "insert", "path": "/a", "insert_line": 0, "new_str": "x"},
    ),
    "text_editor_20250429": (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "/a", "view_range": [1, -1]},
    ),
    "text_editor_20250728": (
        "str_replace_based_edit_tool",
        {"command": "insert", "path": "/a", "insert_line": 0, "insert_text": "x"},
    ),
    "memory_20250818": (
        "memory",
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
    ),
    "computer_20241022": ("computer", {"action": "left_click", "coordinate": [1, 2]}),
    "computer_20250124": (
        "computer",
        {"action": "scroll", "scroll_direction": "down", "scroll_amount": 3},
    ),
    "computer_20251124": ("computer", {"action": "screenshot"}),
}


def tool(kind: str, **fields: object) -> Json:
    return {
        "type": kind,
        "name": TOOLS[kind][0],
        **(SCREEN if kind.startswith("computer_") else {}),
        **fields,
    }


def post_tools(http: httpx.Client, said: str, *tools: Json, **fields: object) -> Json:
    response = http.post(PATH, json=build_request(said, tools=tools, **fields))
    assert response.status_code == 200, response.text
    message: Json = response.json()
    return message


def read_shown_tools() -> dict[str, Json]:
    """Returns the functions in the newest prompt by their names."""
    lines = last_prompt().split("<tools>\n")[1].split("\n</tools>")[0].split("\n")
    functions = [json.loads(line)["function"] for line in lines]
    return {function["name"]: function for function in functions}


@pytest.mark.parametrize("kind", TOOLS)
def test_a_call_comes_back_with_the_name_and_the_input_that_clients_take(
    http: httpx.Client, kind: str
) -> None:
    name, input = TOOLS[kind]
    written = f"<tool_call>\n{json.dumps({'name': name, 'arguments': input})}\n</tool_call>"

    message = post_tools(http, written, tool(kind, strict=True), LOOK)

    [call] = message["content"]
    assert (message["stop_reason"], call["type"], call["name"], call["input"]) == (
        "tool_use",
        "tool_use",
        name,
        input,
    )


@pytest.mark.parametrize("kind", TOOLS)
def test_the_model_is_told_the_arguments_of_each_command(http: httpx.Client, kind: str) -> None:
    name, input = TOOLS[kind]
    post_tools(http, "Hi", tool(kind))
    shown = read_shown_tools()[name]
    schema = shown["parameters"]
    assert schema["type"] == "object" and schema["properties"].keys() >= input.keys()
    assert set(schema["required"]) <= input.keys()
    assert all(field["type"] and field["description"] for field in schema["properties"].values())
    [choice] = [
        field
        for field in schema["properties"].values()
        if "enum" in field and "up" not in field["enum"]
    ] or [{"enum": []}]
    assert all(command in shown["description"] for command in choice["enum"])


def test_the_fields_of_a_type_are_told_to_the_model(http: httpx.Client) -> None:
    post_tools(http, "Hi", tool("text_editor_20250728", max_characters=9000))
    assert "9000 characters" in read_shown_tools()["str_replace_based_edit_tool"]["description"]
    post_tools(
        http,
        "Hi",
        tool("bash_20250124", input_examples=[{"command": "ls -l"}], description="A shell."),
    )
    bash = read_shown_tools()["bash"]
    assert (bash["parameters"]["examples"], bash["description"]) == (
        [{"command": "ls -l"}],
        "A shell.",
    )


@pytest.mark.parametrize("zooms", [True, False])
def test_a_computer_zooms_where_the_client_says_so(http: httpx.Client, zooms: bool) -> None:
    post_tools(http, "Hi", tool("computer_20251124", enable_zoom=zooms))
    computer = read_shown_tools()["computer"]
    properties = computer["parameters"]["properties"]
    assert "1024 x 768 pixels" in computer["description"]
    assert ("zoom" in properties["action"]["enum"], "region" in properties) == (zooms, zooms)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"type": "bash_20990101", "name": "bash"},
            'tools[0].type must be one of "custom", "bash_20241022"',
        ),
        ({"type": "computer_toolset_20260801"}, 'tools[0].type must be one of "custom"'),
        ({"type": "bash_20250124", "name": "shell"}, 'tools[0].name must be "bash", given "shell"'),
        (
            {"type": "computer_20250124", "name": "computer"},
            "tools[0].display_width_px is required",
        ),
        (
            {"type": "computer_20250124", **SCREEN, "display_width_px": 0},
            "tools[0].display_width_px must be >= 1",
        ),
        (
            {"type": "bash_20250124", "input_schema": {"type": "object"}},
            "tools[0].input_schema must not be given",
        ),
        (
            {"type": "bash_20250124", "allowed_callers": ["x"]},
            'tools[0].allowed_callers must have "direct"',
        ),
    ],
    ids=str,
)
def test_a_tool_that_is_not_honoured_is_named(
    http: httpx.Client, fields: Json, message: str
) -> None:
    status, kind, text = read_error(http.post(PATH, json=build_request("Hi", tools=[fields])))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(message), text


def test_two_tools_of_one_name_are_refused(http: httpx.Client) -> None:
    both = [tool("bash_20250124"), tool("bash_20241022")]
    assert read_error(http.post(PATH, json=build_request("Hi", tools=both)))[2].startswith(
        "tools[1].name must be unique"
    )
