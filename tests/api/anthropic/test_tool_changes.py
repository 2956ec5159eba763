"""System messages in the middle of a chat add tools and remove them."""

import httpx
import pytest

from tests.api.anthropic.exchanges import LOOK, PATH, REST, Json, asked, last_prompt, read_error

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def reference(name: str) -> Json:
    return {"type": "tool_reference", "name": name}


def definition(tool: Json) -> Json:
    return {"type": "tool_definition", "definition": tool}


def added(tool: Json) -> Json:
    return {"type": "tool_addition", "tool": tool}


def removed(name: str) -> Json:
    return {"type": "tool_removal", "tool": reference(name)}


def body(*changes: Json, tools: list[Json]) -> Json:
    system: list[Json] = [{"role": "system", "content": list(changes)}] if changes else []
    return asked("", messages=[{"role": "user", "content": "Hi"}, *system], tools=tools)


def shown(http: httpx.Client, fields: Json) -> set[str]:
    response = http.post(PATH, json=fields)
    assert response.status_code == 200, response.text
    return {name for name in ("look", "rest", "bash") if f'"{name}"' in last_prompt()}


@pytest.mark.parametrize(
    ("changes", "tools", "names"),
    [
        ([removed("rest")], [LOOK, REST], {"look"}),
        ([removed("rest"), removed("look")], [LOOK, REST], set()),
        ([removed("rest"), added(reference("rest"))], [LOOK, REST], {"look", "rest"}),
        ([added(reference("rest"))], [LOOK, REST], {"look", "rest"}),
        ([added(definition(REST))], [LOOK], {"look", "rest"}),
        ([added(definition(REST)), removed("rest")], [LOOK], {"look"}),
        ([added(definition(REST)), removed("rest"), added(reference("rest"))], [], {"rest"}),
        ([added(definition({"type": "bash_20250124", "name": "bash"}))], [], {"bash"}),
        ([removed("web_search")], [LOOK, SEARCH], {"look"}),
    ],
)
def test_the_model_is_shown_the_tools_as_they_are_at_the_end(
    http: httpx.Client, changes: list[Json], tools: list[Json], names: set[str]
) -> None:
    assert shown(http, body(*changes, tools=tools)) == names


def test_a_message_that_only_changes_tools_is_no_instruction(http: httpx.Client) -> None:
    shown(http, body(tools=[LOOK]))
    plain = last_prompt()
    shown(http, body(removed("rest"), tools=[LOOK, REST]))
    assert last_prompt() == plain
    shown(http, body(removed("rest"), {"type": "text", "text": "Be kind."}, tools=[LOOK, REST]))
    assert "system\nBe kind." in last_prompt()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            removed("rest"),
            'messages[1].content[0].tool.name must name one of the tools, given "rest"',
        ),
        (
            added(reference("rest")),
            'messages[1].content[0].tool.name must name one of the tools, given "rest"',
        ),
        (
            added(definition({"name": "rest"})),
            "messages[1].content[0].tool.definition.input_schema is required",
        ),
        (
            added(definition(SEARCH)),
            'messages[1].content[0].tool.definition.type must be one of "custom", "bash_20241022", ',
        ),
        (
            {"type": "tool_addition", "tool": {"type": "mcp_tool_reference"}},
            'messages[1].content[0].tool.type must be one of "tool_reference", "tool_definition", given "mcp_',
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
    fields = asked("", messages=[{"role": "system", "content": [removed("rest")]}], tools=[REST])
    assert (
        read_error(http.post(path, json=fields))[2]
        == "messages must have more than changes of the tools"
    )


def test_a_tool_that_was_removed_cannot_be_chosen(http: httpx.Client) -> None:
    fields = body(removed("rest"), tools=[LOOK, REST]) | {
        "tool_choice": {"type": "tool", "name": "rest"}
    }
    assert read_error(http.post(PATH, json=fields))[2].startswith(
        "tool_choice must name one of the tools"
    )
