"""System messages in the middle of a chat add tools and remove them."""

import httpx
import pytest

from tests.api.anthropic.exchanges import (
    LOOK,
    PATH,
    REST,
    Json,
    build_request,
    last_prompt,
    read_error,
)

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def reference(name: str) -> Json:
    return {"type": "tool_reference", "name": name}


def definition(tool: Json) -> Json:
    return {"type": "tool_definition", "definition": tool}


def add_tool(tool: Json) -> Json:
    return {"type": "tool_addition", "tool": tool}


def remove_tool(name: str) -> Json:
    return {"type": "tool_removal", "tool": reference(name)}


def body(*changes: Json, tools: list[Json]) -> Json:
    system: list[Json] = [{"role": "system", "content": list(changes)}] if changes else []
    return build_request("", messages=[{"role": "user", "content": "Hi"}, *system], tools=tools)


def find_tools_in_prompt(http: httpx.Client, fields: Json) -> set[str]:
    response = http.post(PATH, json=fields)
    assert response.status_code == 200, response.text
    return {name for name in ("look", "rest", "bash") if f'"{name}"' in last_prompt()}


@pytest.mark.parametrize(
    ("changes", "tools", "names"),
    [
        ([remove_tool("rest")], [LOOK, REST], {"look"}),
        ([remove_tool("rest"), remove_tool("look")], [LOOK, REST], set()),
        ([remove_tool("rest"), add_tool(reference("rest"))], [LOOK, REST], {"look", "rest"}),
        ([add_tool(reference("rest"))], [LOOK, REST], {"look", "rest"}),
        ([add_tool(definition(REST))], [LOOK], {"look", "rest"}),
        ([add_tool(definition(REST)), remove_tool("rest")], [LOOK], {"look"}),
        (
            [add_tool(definition(REST)), remove_tool("rest"), add_tool(reference("rest"))],
            [],
            {"rest"},
        ),
        ([add_tool(definition({"type": "bash_20250124", "name": "bash"}))], [], {"bash"}),
        ([remove_tool("web_search")], [LOOK, SEARCH], {"look"}),
    ],
)
def test_the_model_is_shown_the_tools_as_they_are_at_the_end(
    http: httpx.Client, changes: list[Json], tools: list[Json], names: set[str]
) -> None:
    assert find_tools_in_prompt(http, body(*changes, tools=tools)) == names


def test_a_message_that_only_changes_tools_is_no_instruction(http: httpx.Client) -> None:
    find_tools_in_prompt(http, body(tools=[LOOK]))
    plain = last_prompt()
    find_tools_in_prompt(http, body(remove_tool("rest"), tools=[LOOK, REST]))
    assert last_prompt() == plain
    find_tools_in_prompt(
        http, body(remove_tool("rest"), {"type": "text", "text": "Be kind."}, tools=[LOOK, REST])
    )
    assert "system\nBe kind." in last_prompt()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            remove_tool("rest"),
            'messages[1].content[0].tool.name must name one of the tools, given "rest"',
        ),
        (
            add_tool(reference("rest")),
            'messages[1].content[0].tool.name must name one of the tools, given "rest"',
        ),
        (
            add_tool(definition({"name": "rest"})),
            "messages[1].content[0].tool.definition.input_schema is required",
        ),
        (
            add_tool(definition(SEARCH)),
            "messages[1].content[0].tool.definition.type must be one of "
            '"custom", "bash_20241022", ',
        ),
        (
            {"type": "tool_addition", "tool": {"type": "mcp_tool_reference"}},
            "messages[1].content[0].tool.type must be one of "
            '"tool_reference", "tool_definition", given "mcp_',
        ),
        ({"type": "tool_removal"}, "messages[1].content[0].tool is required"),
    ],
)
def test_a_change_that_is_not_honoured_is_named(
    http: httpx.Client, change: Json, message: str
) -> None:
    status, kind, text = read_error(http.post(PATH, json=body(change, tools=[LOOK])))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(message), text


@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
def test_a_chat_of_nothing_but_changes_is_refused(http: httpx.Client, path: str) -> None:
    fields = build_request(
        "", messages=[{"role": "system", "content": [remove_tool("rest")]}], tools=[REST]
    )
    assert (
        read_error(http.post(path, json=fields))[2]
        == "messages must have more than changes of the tools"
    )


def test_a_tool_that_was_removed_cannot_be_chosen(http: httpx.Client) -> None:
    fields = body(remove_tool("rest"), tools=[LOOK, REST]) | {
        "tool_choice": {"type": "tool", "name": "rest"}
    }
    assert read_error(http.post(PATH, json=fields))[2].startswith(
        "tool_choice must name one of the tools"
    )
