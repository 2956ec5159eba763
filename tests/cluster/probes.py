"""Probes of a server: requests whose outcomes do not depend on the server that answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any  # JSON

import httpx
import websockets

from tests.cluster.outcomes import normalise, read_outcome, read_stream_outcome
from tests.cluster.probed_models import ADAPTER, MODEL, VECTORS

CHAT = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Hello!"}],
    "max_tokens": 8,
    "temperature": 0,
}
RESPONSE = {"model": MODEL, "input": "Hello!", "max_output_tokens": 16, "temperature": 0}
MESSAGES = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Hello!"}],
    "max_tokens": 8,
    "temperature": 0,
}
LONG = {"ignore_eos": True}
NUM_LONG = 3000
ENOUGH_LOOKS = 12  # needed for servers that take turns
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}

Probe = Callable[[httpx.AsyncClient], Awaitable[Any]]
PROBES: dict[str, Probe] = {}


def probe(check: Probe) -> Probe:
    PROBES[check.__name__.replace("_", " ")] = check
    return check


def add_probe(name: str, method: str, path: str, body: Any = None, **options: Any) -> None:
    async def ask(http: httpx.AsyncClient) -> Any:
        return read_outcome(await http.request(method, path, json=body, **options))

    PROBES[name] = ask


def add_stream_probe(name: str, path: str, body: Any) -> None:
    async def ask(http: httpx.AsyncClient) -> Any:
        return read_stream_outcome(await http.post(path, json=body))

    PROBES[name] = ask


for path in (
    *(
        "/health",
        "/ping",
        "/version",
        "/v1/models",
        f"/v1/models/{MODEL}",
        "/v1/models/none",
        "/v2/health/live",
    ),
    *(
        "/v2/health/ready",
        f"/v2/models/{MODEL}/ready",
        "/v1/config",
        "/v1/openapi.json",
        "/",
        "/about",
        "/api/tags",
    ),
    *(
        "/api/version",
        "/tokenizer_info",
        "/none",
        "/v1/chat/completions",
        "/v1/responses/resp_none",
    ),
    *(f"/v1/models/{ADAPTER}", f"/v1/models/{VECTORS}", f"/v2/models/{VECTORS}/ready", "/api/ps"),
):
    add_probe(f"GET {path}", "GET", path)
add_probe("models for Anthropic", "GET", "/v1/models", headers={"anthropic-version": "2023-06-01"})
add_probe("tokenize", "POST", "/v1/tokenize", {"prompt": "Hello, world"})
add_probe("detokenize", "POST", "/v1/detokenize", {"tokens": [5, 6, 7]})
add_probe("chat", "POST", "/v1/chat/completions", CHAT)
add_probe(
    "chat, logprobs",
    "POST",
    "/v1/chat/completions",
    CHAT | {"logprobs": True, "top_logprobs": 1, "max_tokens": 1},
)
add_probe("chat, two choices", "POST", "/v1/chat/completions", CHAT | {"n": 2})
add_probe(
    "chat, tool",
    "POST",
    "/v1/chat/completions",
    CHAT | {"tools": [TOOL], "tool_choice": "required", "max_tokens": 60},
)
add_probe(
    "chat, schema",
    "POST",
    "/v1/chat/completions",
    CHAT
    | {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        "max_tokens": 40,
    },
)
add_probe("chat, render", "POST", "/v1/chat/completions/render", CHAT)
add_probe(
    "completion",
    "POST",
    "/v1/completions",
    {"model": MODEL, "prompt": "One, two", "max_tokens": 4, "temperature": 0},
)
add_probe("messages", "POST", "/v1/messages", MESSAGES)
add_probe(
    "messages, count",
    "POST",
    "/v1/messages/count_tokens",
    {"model": MODEL, "messages": MESSAGES["messages"]},
)
add_probe(
    "Ollama chat",
    "POST",
    "/api/chat",
    {"model": MODEL, "messages": CHAT["messages"], "stream": False},
)
add_probe("Ollama show", "POST", "/api/show", {"model": MODEL})
add_probe(
    "invocations",
    "POST",
    "/invocations",
    {"inputs": "One, two", "parameters": {"max_new_tokens": 4}},
)
add_probe("v3 chat", "POST", "/v3/chat/completions", CHAT)
add_probe("chat, adapter", "POST", "/v1/chat/completions", CHAT | {"model": ADAPTER})
add_probe(
    "an adapter that is loaded",
    "POST",
    "/v1/load_lora_adapter",
    {"lora_name": "other", "lora_path": "/none"},
)
add_probe("a model that is loaded", "POST", "/v1/models/load", {"name": "other", "model": "/none"})
add_probe(
    "embeddings", "POST", "/v1/embeddings", {"model": VECTORS, "input": ["the sea", "a river"]}
)
add_probe(
    "embeddings, base64",
    "POST",
    "/v1/embeddings",
    {"model": VECTORS, "input": "a", "encoding_format": "base64"},
)
add_probe(
    "embeddings, a model that chats", "POST", "/v1/embeddings", {"model": MODEL, "input": "the sea"}
)
add_probe("Ollama embed", "POST", "/api/embed", {"model": VECTORS, "input": ["the sea", "a river"]})
add_probe("Ollama embeddings", "POST", "/api/embeddings", {"model": VECTORS, "prompt": "the sea"})
add_probe(
    "rerank",
    "POST",
    "/v1/rerank",
    {"model": VECTORS, "query": "water", "documents": ["the sea", "a stone"]},
)
add_probe(
    "rerank, v2",
    "POST",
    "/v2/rerank",
    {"model": VECTORS, "query": "water", "documents": ["a", "b"], "top_n": 1},
)
add_probe(
    "score",
    "POST",
    "/v1/score",
    {"model": VECTORS, "text_1": "water", "text_2": ["the sea", "a stone"]},
)
add_probe(
    "responses, count", "POST", "/v1/responses/input_tokens", {"model": MODEL, "input": "Hello!"}
)
add_probe("a field's value", "POST", "/v1/chat/completions", CHAT | {"temperature": 9})
add_probe("an unknown model", "POST", "/v1/chat/completions", CHAT | {"model": "none"})
add_probe("a method that is none", "DELETE", "/v1/chat/completions")
add_probe(
    "too long a prompt",
    "POST",
    "/v1/chat/completions",
    CHAT | {"messages": [{"role": "user", "content": "y " * 9000}]},
)
add_stream_probe(
    "chat, streamed",
    "/v1/chat/completions",
    CHAT | {"stream": True, "stream_options": {"include_usage": True}},
)
add_stream_probe(
    "completion, streamed",
    "/v1/completions",
    {"prompt": "One", "max_tokens": 4, "temperature": 0, "stream": True},
)
add_stream_probe("messages, streamed", "/v1/messages", MESSAGES | {"stream": True})
add_stream_probe("Ollama, streamed", "/api/chat", {"model": MODEL, "messages": CHAT["messages"]})
add_stream_probe("response, streamed", "/v1/responses", RESPONSE | {"stream": True})
add_stream_probe(
    "background, streamed", "/v1/responses", RESPONSE | {"stream": True, "background": True}
)


@probe
async def headers_of_a_chat(http: httpx.AsyncClient) -> Any:
    answer = await http.post("/v1/chat/completions", json=CHAT, headers={"x-request-id": "mine-1"})
    return sorted(
        (name, value)
        for name, value in answer.headers.multi_items()
        if name not in ("date", "content-length")
    )


@probe
async def headers_of_a_stream(http: httpx.AsyncClient) -> Any:
    answer = await http.post(
        "/v1/chat/completions", json=CHAT | {"stream": True}, headers={"x-request-id": "mine-1"}
    )
    return sorted((name, value) for name, value in answer.headers.multi_items() if name != "date")


@probe
async def ids_of_a_request(http: httpx.AsyncClient) -> Any:
    answer = await http.get("/v1/models")
    return len(answer.headers.get_list("x-request-id", split_commas=False)), (
        answer.headers["x-request-id"] == answer.headers["request-id"]
    )


@probe
async def refused_bodies(http: httpx.AsyncClient) -> Any:
    json_type = {"content-type": "application/json"}
    bodies = [
        (b"{", json_type),
        (b"[]", json_type),
        (b"", json_type),
        (b"\xff", json_type),
        (b"a=1", {}),
    ]
    answers = [
        await http.post("/v1/chat/completions", content=body, headers=headers)
        for body, headers in bodies
    ]
    large = await http.post("/v1/chat/completions", content=b"x" * (17 * 2**20), headers=json_type)
    return [read_outcome(answer) for answer in (*answers, large)]


@probe
async def a_body_in_pieces(http: httpx.AsyncClient) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        content = json.dumps(CHAT).encode()
        for begin in range(0, len(content), 10):
            yield content[begin : begin + 10]

    answer = await http.post(
        "/v1/chat/completions", content=pieces(), headers={"content-type": "application/json"}
    )
    return read_outcome(answer)


@probe
async def names_of_metrics(http: httpx.AsyncClient) -> Any:
    answer = await http.get("/metrics")
    names = {line.split()[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}
    return answer.status_code, answer.headers["content-type"], sorted(names)


@probe
async def a_stored_response(http: httpx.AsyncClient) -> Any:
    made = await http.post("/v1/responses", json=RESPONSE)
    path = f"/v1/responses/{made.json()['id']}"
    found = [read_outcome(await http.get(path)) for _ in range(4)]
    items = read_outcome(await http.get(f"{path}/input_items"))
    replayed = read_stream_outcome(await http.get(path, params={"stream": True}))
    then = RESPONSE | {"input": "And what is 2 plus 3?", "previous_response_id": made.json()["id"]}
    continued = read_outcome(await http.post("/v1/responses", json=then))
    gone = [read_outcome(await http.delete(path)), read_outcome(await http.get(path))]
    return [read_outcome(made), found, items, replayed, continued, gone]


@probe
async def a_response_in_the_background(http: httpx.AsyncClient) -> Any:
    made = await http.post("/v1/responses", json=RESPONSE | {"background": True})
    return [made.status_code, await wait_for_end(http, made.json()["id"])]


@probe
async def a_response_that_is_cancelled(http: httpx.AsyncClient) -> Any:
    body = RESPONSE | LONG | {"background": True, "max_output_tokens": NUM_LONG}
    response_id = (await http.post("/v1/responses", json=body)).json()["id"]
    answer = await http.post(f"/v1/responses/{response_id}/cancel")
    return [answer.status_code, (await wait_for_end(http, response_id))["status"]]


@probe
async def a_conversation(http: httpx.AsyncClient) -> Any:
    item = {"type": "message", "role": "user", "content": "My name is Ann."}
    made = await http.post("/v1/conversations", json={"items": [item]})
    path = f"/v1/conversations/{made.json()['id']}"
    answered = await http.post("/v1/responses", json=RESPONSE | {"conversation": made.json()["id"]})
    items = read_outcome(await http.get(f"{path}/items", params={"order": "asc"}))
    return [
        read_outcome(made),
        read_outcome(answered),
        items,
        read_outcome(await http.delete(path)),
        read_outcome(await http.get(path)),
    ]


@probe
async def a_client_that_leaves_a_stream(http: httpx.AsyncClient) -> Any:
    """The response itself records that its client left, so any replica can show it."""
    body = RESPONSE | LONG | {"stream": True, "max_output_tokens": NUM_LONG}
    async with http.stream("POST", "/v1/responses", json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                response_id = json.loads(line.removeprefix("data: "))["response"]["id"]
                break
    end = await wait_for_end(http, response_id)
    return end["status"], end["incomplete_details"], end["error"]


@probe
async def a_client_that_leaves_before_the_answer(http: httpx.AsyncClient) -> Any:
    """A missed departure leaves the answer in the conversation."""
    conversation = (await http.post("/v1/conversations", json={})).json()["id"]
    body = RESPONSE | LONG | {"conversation": conversation, "max_output_tokens": NUM_LONG}
    asking = asyncio.create_task(http.post("/v1/responses", json=body))
    while not await is_busy(http):
        await asyncio.sleep(0.01)
    asking.cancel()
    num_idle = 0
    while num_idle < ENOUGH_LOOKS:
        num_idle = 0 if await is_busy(http) else num_idle + 1
    items = (
        await http.get(f"/v1/conversations/{conversation}/items", params={"limit": 100})
    ).json()["data"]
    return [item for item in items if len(json.dumps(item)) > NUM_LONG]


@probe
async def a_websocket(http: httpx.AsyncClient) -> Any:
    url = str(http.base_url).replace("http", "ws", 1).rstrip("/") + "/v1/responses"
    turns = []
    async with websockets.connect(url, open_timeout=None) as socket:
        for _ in range(2):
            await socket.send(json.dumps(RESPONSE | {"type": "response.create"}))
            kinds: list[str] = []
            while not kinds or kinds[-1] not in (
                "response.completed",
                "response.incomplete",
                "error",
            ):
                event = json.loads(await socket.recv())
                kinds.append(event["type"])
            turns.append([list(dict.fromkeys(kinds)), normalise(event["response"]["output"])])
    return turns


@probe
async def a_websocket_that_is_refused(http: httpx.AsyncClient) -> Any:
    url = str(http.base_url).replace("http", "ws", 1).rstrip("/") + "/v1/none"
    try:
        async with websockets.connect(url, open_timeout=None):
            return "opened"
    except websockets.InvalidStatus as error:
        return error.response.status_code, normalise(json.loads(error.response.body or b"{}"))


async def wait_for_end(http: httpx.AsyncClient, response_id: str) -> Any:
    """Waits until the response has ended, and returns it."""
    while True:
        found = (await http.get(f"/v1/responses/{response_id}")).json()
        if found["status"] not in ("queued", "in_progress"):
            return normalise(found)
        await asyncio.sleep(0.05)


async def is_busy(http: httpx.AsyncClient) -> bool:
    """Tells whether any of several servers runs a request or has one waiting.

    A proxy distributes simultaneous requests, so several are sent.
    """
    pages = await asyncio.gather(*(http.get("/metrics") for _ in range(4)))
    lines = [line for page in pages for line in page.text.splitlines()]
    names = ("ouzel_num_requests_running{", "ouzel_num_requests_waiting{")
    return any(float(line.rpartition(" ")[2]) > 0 for line in lines if line.startswith(names))
