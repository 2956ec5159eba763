"""Tools of every kind: the model gets functions, and its calls get the client's form again."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx
import pytest
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionToolCall

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.engines import received_prompts
from tests.api.requests import Json, read_error
from tests.api.responses.strict import remove_ids, strict_events, strict_response
from tests.api.responses.test_response import LOOK
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

AGENTS: Json = {
    "type": "namespace",
    "name": "agents",
    "description": "Other agents.",
    "tools": [
        {
            "type": "function",
            "name": "spawn",
            "description": "Starts one.",
            "strict": False,
            "parameters": None,
        },
        {"type": "custom", "name": "tell", "description": "Tells it."},
    ],
}
CREW: Json = {
    "type": "namespace",
    "name": "crew",
    "description": "The crew.",
    "tools": [{"type": "function", "name": "spawn"}],
}
PATCH: Json = {
    "type": "custom",
    "name": "patch",
    "description": "Edits files.",
    "format": {"type": "text"},
}
SEARCH: Json = {"type": "web_search", "external_web_access": False}
TEXT = '+a "b"\n\t\\n é'


def grammar(syntax: str, definition: str) -> Json:
    return {**PATCH, "format": {"type": "grammar", "syntax": syntax, "definition": definition}}


def serve_calling_model(
    *, engine_factory: str = "create_parrot", refuses_unknown_tools: bool = False
) -> AbstractContextManager[RunningServer]:
    return running_server(
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES),
        engine_factory=engine_factory,
        refuses_unknown_tools=refuses_unknown_tools,
    )


@pytest.fixture(scope="module")
def recording_http() -> Iterator[httpx.Client]:
    with (
        serve_calling_model(engine_factory="create_recording_parrot") as server,
        server.client() as client,
    ):
        yield client


def write_call(name: str, arguments: object) -> str:
    """Writes a call as the model and the chat template do."""
    call = {"name": name, "arguments": arguments}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def body(said: str, *tools: object, **fields: object) -> Json:
    return {
        "model": "parrot",
        "input": [{"role": "user", "content": said}],
        "tools": tools,
        **fields,
    }


@pytest.mark.parametrize(
    ("tools", "said", "expected"),
    [
        (
            [AGENTS, LOOK],
            write_call("spawn", {}),
            {"name": "spawn", "namespace": "agents", "arguments": "{}"},
        ),
        ([AGENTS, LOOK], write_call("look", {}), {"name": "look", "arguments": "{}"}),
        (
            [AGENTS, CREW],
            write_call("crew__spawn", {}),
            {"name": "spawn", "namespace": "crew", "arguments": "{}"},
        ),
        (
            [AGENTS],
            write_call("tell", {"input": TEXT}),
            {"name": "tell", "namespace": "agents", "input": TEXT},
        ),
        ([PATCH], write_call("patch", {"input": TEXT}), {"name": "patch", "input": TEXT}),
        ([PATCH], write_call("patch", {"text": "a"}), {"name": "patch", "input": '{"text": "a"}'}),
    ],
)
def test_a_call_is_the_clients_in_a_stream_and_whole(
    thinker_http: httpx.Client, tools: list[Json], said: str, expected: Json
) -> None:
    unary = strict_response(thinker_http.post("/v1/responses", json=body(said, *tools)).text)
    events = strict_events(thinker_http.post("/v1/responses", json=body(said, *tools, stream=True)))

    [item] = unary.output
    assert isinstance(item, ResponseFunctionToolCall | ResponseCustomToolCall)
    assert {
        key: value for key, value in item.to_dict().items() if key in {*expected, "namespace"}
    } == expected
    assert item.type == ("custom_tool_call" if "input" in expected else "function_call")
    added = next(event.item for event in events if event.type == "response.output_item.added")
    assert added.to_dict() | {"arguments": "", "input": ""} == {
        **item.to_dict(),
        "id": added.id,
        "call_id": added.to_dict()["call_id"],
        "status": "in_progress",
        "arguments": "",
        "input": "",
    }
    deltas = [
        event.to_dict()["delta"]
        for event in events
        if event.type.endswith(("input.delta", "arguments.delta"))
    ]
    assert "".join(map(str, deltas)) == expected.get("input", expected.get("arguments"))
    end = events[-1]
    assert end.type == "response.completed"
    end.response.usage = unary.usage  # the second request finds the prompt in the cache
    assert remove_ids(end.response) == remove_ids(unary)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([AGENTS, CREW, SEARCH], write_call("crew__spawn", {"at": 1})),
        ([AGENTS, PATCH], write_call("patch", {"input": TEXT})),
        ([AGENTS, PATCH], write_call("tell", {"input": TEXT})),
    ],
)
def test_the_second_prompt_goes_on_where_the_first_answer_has_ended(
    recording_http: httpx.Client, tools: list[Json], said: str
) -> None:
    said = f"\n{said}"  # the template begins the answer with a line break
    [item] = recording_http.post("/v1/responses", json=body(said, *tools)).json()["output"]
    first = [*received_prompts[-1], *said.encode()]
    answered = {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "done"}
    later = body("", *tools) | {"input": [{"role": "user", "content": said}, item, answered]}
    assert recording_http.post("/v1/responses", json=later).status_code == 200
    assert list(received_prompts[-1][: len(first)]) == first


def test_a_stored_call_is_continued_under_the_same_names(thinker_http: httpx.Client) -> None:
    first = thinker_http.post(
        "/v1/responses", json=body(write_call("crew__spawn", {}), AGENTS, CREW)
    ).json()
    [item] = first["output"]
    answered = {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
    later = body("", AGENTS, CREW) | {"input": [answered], "previous_response_id": first["id"]}
    resent = body("", AGENTS, CREW) | {
        "input": [{"role": "user", "content": write_call("crew__spawn", {})}, item, answered]
    }
    kept, sent = [
        thinker_http.post("/v1/responses/input_tokens", json=each).json()
        for each in (later, resent)
    ]
    assert kept == sent


def test_parts_of_an_output_are_read_and_calls_are_matched_by_their_kind(
    thinker_http: httpx.Client,
) -> None:
    called = {
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "patch",
        "input": TEXT,
        "status": "completed",
    }
    answered: Json = {
        "type": "custom_tool_call_output",
        "call_id": "a",
        "output": [{"type": "input_text", "text": "x"}],
    }
    asked = body("Hi", PATCH)
    asked["input"] = [{"role": "user", "content": "Hi"}, called, answered]
    assert thinker_http.post("/v1/responses", json=asked).status_code == 200
    asked["input"] = [
        {"role": "user", "content": "Hi"},
        called,
        {**answered, "type": "function_call_output"},
    ]
    error = read_error(thinker_http.post("/v1/responses", json=asked))
    assert (
        error["message"]
        == 'input[2].call_id must be the call_id of a function_call before it, given "a"'
    )


def test_a_stored_call_is_complete(thinker_http: httpx.Client) -> None:
    called = {
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "tell",
        "namespace": "agents",
        "input": TEXT,
    }
    answered = {"type": "custom_tool_call_output", "call_id": "a", "output": "done"}
    hosted = {"type": "web_search_call", "id": "ws_1", "status": "searching"}
    asked = body("", AGENTS) | {
        "input": [called, answered, hosted, {"role": "user", "content": "Hi"}]
    }
    kept = thinker_http.post("/v1/responses", json=asked).json()
    items = thinker_http.get(
        f"/v1/responses/{kept['id']}/input_items", params={"order": "asc"}
    ).json()["data"]
    assert [{key: item.get(key) for key in called} for item in items[:1]] == [called]
    assert [item["type"] for item in items] == [
        "custom_tool_call",
        "custom_tool_call_output",
        "message",
    ]


@pytest.mark.parametrize(
    ("fields", "param", "complaint"),
    [
        (
            {"tools": [SEARCH]},
            "tools[0].type",
            'given "web_search": this server runs no such tool',
        ),
        ({"tools": [{"name": "x"}]}, "tools[0].type", "required"),
        (
            {"tools": [LOOK], "tool_choice": {"type": "web_search"}},
            "tool_choice",
            "given web_search",
        ),
        ({"tool_choice": {"type": "custom", "name": "look"}}, "tool_choice", "given 'look'"),
        ({"tool_choice": {"type": "function", "name": "patch"}}, "tool_choice", "given 'patch'"),
        (
            {"tool_choice": {"type": "function", "name": "spawn", "namespace": "x"}},
            "tool_choice",
            "given 'x.spawn'",
        ),
        ({"tools": [{"type": "custom"}]}, "tools[0].custom", "required"),
        (
            {"tools": [PATCH, {**LOOK, "name": "patch"}]},
            "tools[1].name",
            "must be unique, given 'patch' again",
        ),
        ({"tools": [{**AGENTS, "tools": None}]}, "tools[0].tools", "required"),
        ({"tools": [{**AGENTS, "name": "a b"}]}, "tools[0].name", "must match"),
        (
            {"tools": [{**AGENTS, "tools": [SEARCH]}]},
            "tools[0].tools[0].type",
            'given "web_search"',
        ),
        (
            {
                "tools": [
                    {**CREW, "tools": [{"type": "function", "name": f"f{n}"} for n in range(1025)]}
                ]
            },
            "tools",
            "1024",
        ),
        (
            {"tools": [{**PATCH, "format": {"type": "grammar"}}]},
            "tools[0].format.syntax",
            "required",
        ),
        (
            {"tools": [grammar("ebnf", "")]},
            "tools[0].format.syntax",
            '"lark", "regex", given "ebnf"',
        ),
        (
            {"tools": [grammar("lark", "start: b")]},
            "tools",
            "custom tool 'patch': format.definition: the rule 'b'",
        ),
        (
            {"tools": [grammar("regex", "a(?=b)")]},
            "tools",
            "custom tool 'patch': format.definition has look-around",
        ),
        (
            {"input": [{"type": "custom_tool_call", "call_id": "a", "name": "b"}]},
            "input[0].input",
            "a string",
        ),
        ({"input": [{"type": "unheard_of"}]}, "input[0].type", '"unheard_of"'),
    ],
)
def test_unsupported_tools_are_named(
    thinker_http: httpx.Client, fields: Json, param: str, complaint: str
) -> None:
    answer = thinker_http.post("/v1/responses", json=body("Hi", AGENTS, CREW, LOOK, PATCH) | fields)
    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param), error
    assert complaint in str(error["message"]), error
