"""The log line of a refused request has the reason and the field, but no text of the client."""

import logging
from collections.abc import Iterator
from typing import Any  # JSON, and a record's facts

import httpx
import pytest

from ouzel.api.http.refusal_reason import RefusalReason, make_refusal_reason
from ouzel.api.operations import DOCUMENTED
from ouzel.errors import EngineFailed, InvalidRequest, ModelNotFound
from tests.api.requests import Json, chat, wait_until
from tests.api.responses.sockets import Socket, connect_socket
from tests.api.serving import RunningServer

LOGGER = "ouzel.api.http.request_log"
SECRET = "Zebra"  # a word that the server's own messages do not contain
USER = [{"role": "user", "content": "Hi"}]
GOOD: dict[str, Json] = {
    "/v1/chat/completions": chat("Hi"),
    "/v1/completions": {"model": "parrot", "prompt": "Hi"},
    "/v1/responses": {"model": "parrot", "input": "Hi"},
    "/tokenize": {"messages": USER},
    "/invocations": {"inputs": "Hi"},
    "/v1/messages": {"messages": USER},
    "/api/chat": {"messages": USER},
}
SHAPED = {
    *(
        "messages",
        "input",
        "inputs",
        "system",
        "tools",
        "tool_choice",
        "response_format",
        "parameters",
    ),
    *(
        "structured_outputs",
        "grammar",
        "json_schema",
        "output_config",
        "thinking",
        "format",
        "options",
    ),
}
VALUES: tuple[object, ...] = (
    SECRET,
    f"'{SECRET}",
    f'{SECRET}" {SECRET}',
    [SECRET],
    {SECRET: SECRET},
    [{SECRET: {SECRET: 1}}],
    {"type": SECRET, "name": SECRET},
    [{"type": "function", "function": {"name": f"{SECRET} {SECRET}"}}],
    [{"role": SECRET, "content": SECRET}],
    [{"role": "user", "content": [{"type": SECRET, SECRET: SECRET}]}],
    {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": {"type": SECRET, "properties": {SECRET: 7}}},
    },
    [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": SECRET, "name": SECRET, "input": {}}],
        }
    ],
    [
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": SECRET, "content": SECRET}],
        }
    ],
    [{"name": f"{SECRET} {SECRET}", "input_schema": {"type": SECRET, SECRET: SECRET}}],
    {
        "format": {"type": "json_schema", "schema": {"type": SECRET, "properties": {SECRET: 7}}},
        "effort": SECRET,
    },
    {
        "type": "regex",
        "regex": f"({SECRET}",
        "pattern": f"({SECRET}",
        "grammar": f"{SECRET} ::= {SECRET}(",
    },
)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger=LOGGER)
    return caplog


def read_lines(log: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in log.records if record.name == LOGGER]


def read_facts(log: pytest.LogCaptureFixture, count: int = 1) -> list[dict[str, Any]]:
    """Waits for `count` lines, which come after their responses, and returns their facts."""
    wait_until(lambda: len(read_lines(log)) >= count)
    return [record.facts for record in read_lines(log)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        ("/v1/chat/completions", {"n": 5000}, ("invalid_request_error", "n", "must be <= 128")),
        (
            "/v1/chat/completions",
            {"temperature": "Zebra"},
            ("invalid_request_error", "temperature", "must be a number"),
        ),
        (
            "/v1/chat/completions",
            {"max_tokens": 3, "n_predict": 4},
            ("invalid_request_error", "n_predict", "must be the same as max_tokens"),
        ),
        ("/v1/chat/completions", {"model": "Zebra"}, ("model_not_found", "model", "the model")),
        (
            "/v1/chat/completions",
            {"top_logprobs": 2},
            ("invalid_request_error", "top_logprobs", "needs logprobs to be true"),
        ),
        ("/v1/nowhere", {}, ("unknown_url", None, "unknown URL")),
        ("/v1/models", {}, ("method_not_allowed", None, "allowed: GET, HEAD, OPTIONS")),
        (
            "/v1/chat/completions",
            {"metadata": {"Zebra": 1}},
            ("invalid_request_error", "metadata.…", "must be a string"),
        ),
    ],
)
def test_reason_and_field_are_logged(
    http: httpx.Client,
    log: pytest.LogCaptureFixture,
    path: str,
    fields: Json,
    told: tuple[str, str | None, str],
) -> None:
    status = http.post(path, json=chat("Hi", **fields)).status_code
    [facts] = read_facts(log)
    assert (facts["error"], facts.get("field"), facts["reason"]) == told
    assert facts["status"] == status
    text = read_lines(log)[0].getMessage()
    assert f" error={told[0]} " in text and text.endswith(f' reason="{told[2]}"')
    assert "Zebra" not in text


@pytest.mark.parametrize("path", GOOD)
def test_no_text_of_the_client_is_logged(
    http: httpx.Client, log: pytest.LogCaptureFixture, path: str
) -> None:
    bodies = list(bodies_with_a_secret(path))
    statuses = [
        http.post(path, json={**GOOD[path], "max_tokens": 1, **fields}).status_code
        for fields in bodies
    ]
    refused = [status for status in statuses if status >= 400]
    assert max(statuses) < 500 and len(refused) > len(bodies) / 2
    told = [facts for facts in read_facts(log, len(bodies)) if "error" in facts]
    assert [facts["status"] for facts in told] == refused
    assert [
        facts
        for facts in told
        if SECRET in f"{facts.get('field')}{facts['reason']}{facts['error']}"
    ] == []


@pytest.mark.parametrize("value", ["1e999", '"\\ud800"'])
@pytest.mark.parametrize(
    "text",
    ['{"Zebra": %s}', '{"messages": [{"Zebra": %s}]}', '{"model": "m", "metadata": {"Zebra": %s}}'],
)
def test_no_name_is_told_of_a_body_that_cannot_be_read(
    http: httpx.Client, log: pytest.LogCaptureFixture, text: str, value: str
) -> None:
    answer = http.post("/v1/chat/completions", content=text % value)
    assert (answer.status_code, "Zebra" in answer.json()["error"]["param"]) == (400, True)
    [facts] = read_facts(log)
    assert facts["field"] == "…" and facts["reason"].startswith("must be ")
    assert "Zebra" not in read_lines(log)[0].getMessage()


def bodies_with_a_secret(path: str) -> Iterator[Json]:
    """Yields bodies with the secret in each field: in some shapes, in fields of objects in all."""
    [body, *_] = next(each.bodies for each in DOCUMENTED if each.path in (path, f"/v1{path}"))
    for position, name in enumerate([*body.__struct_fields__, SECRET]):
        num_values = len(VALUES) if name in SHAPED and path != "/v1/completions" else 1
        yield from (
            {name: VALUES[(position + number) % len(VALUES)]} for number in range(num_values)
        )


def test_an_error_in_a_stream_is_told_too(
    http: httpx.Client, log: pytest.LogCaptureFixture
) -> None:
    assert (
        http.post("/v1/chat/completions", json=chat("Zebra<|fail|>", stream=True)).status_code
        == 200
    )
    [facts] = read_facts(log)
    assert (facts["status"], facts["error"], facts["finish"]) == (500, "engine_failed", "error")
    assert "Zebra" not in facts["reason"]


def read_messages(log: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Returns the facts of messages, without the lines of connections.

    A connection's line comes after its end, so it can be a line of an earlier test.
    """
    return [facts for facts in read_facts(log, 0) if facts["method"] != "GET"]


@pytest.mark.parametrize(
    ("message", "field", "reason"),
    [
        (
            {"type": "response.create", "model": "parrot", "input": "Zebra", "temperature": 9},
            "temperature",
            "must be <= 2.0",
        ),
        (
            {"type": "Zebra"},
            "type",
            "must be one of response.create, response.cancel, response.steer",
        ),
        ({"type": "response.create", "stream_id": "Zebra zebra"}, "stream_id", None),
        (["Zebra"], None, "the body must be a JSON object"),
    ],
)
def test_messages_of_websockets_are_logged(
    server: RunningServer,
    log: pytest.LogCaptureFixture,
    message: object,
    field: str | None,
    reason: str | None,
) -> None:
    with connect_socket(server.url) as socket:
        socket.connection.send(httpx.Request("POST", "http://a", json=message).content.decode())
        assert isinstance(socket, Socket) and socket.event().type == "error"
        wait_until(lambda: read_messages(log) != [])
        [facts] = read_messages(log)
    assert (facts["status"], facts["error"] != "", facts.get("field")) == (400, True, field)
    assert reason is None or facts["reason"] == reason
    assert "Zebra" not in str(facts)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            InvalidRequest("must be <= 4, given 9", field="n"),
            ("invalid_request_error", "n", "must be <= 4"),
        ),
        (
            InvalidRequest(": this model's template has none", field="a[1].b"),
            (InvalidRequest.type, "a[1].b", "this model's template has none"),
        ),
        (
            InvalidRequest("is not one: Zebra", field="tools[0].function.parameters.Zebra"),
            (InvalidRequest.type, "tools[0].function.parameters.…", "is not one"),
        ),
        (InvalidRequest("line\nZebra", field="Zebra zebra"), (InvalidRequest.type, "…", "line")),
        (
            ModelNotFound('the model "Zebra\'s" does not exist'),
            ("model_not_found", None, "the model"),
        ),
        (EngineFailed("the engine failed"), ("engine_failed", None, "the engine failed")),
        (
            ValueError("Zebra"),
            ("server_error", None, "the server failed on this request; its log says why"),
        ),
    ],
)
def test_a_reason_ends_where_a_value_may_begin(
    error: Exception, told: tuple[str, str | None, str]
) -> None:
    assert make_refusal_reason(error) == RefusalReason(*told)
