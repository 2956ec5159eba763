"""Compaction keeps some items of a conversation, and summarises the others for the model.

The engine repeats the text to summarise, so a summary shows its source.
"""

import asyncio
import json
import socket
from pathlib import Path

import httpx
import openai
import pytest
from openai.types.conversations.message import Message as OpenAIMessage
from openai.types.responses import CompactedResponse
from openai.types.responses.response_input_item_param import ResponseInputItemParam

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.config import LimitsConfig
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.responses.input_items import read_input, read_messages
from ouzel.responses.item_fields import Message
from ouzel.responses.items.packed_text import SUMMARY
from tests.api.byte_tokens import byte_tokenizer
from tests.api.requests import Json, read_error, sum_metric, wait_until
from tests.api.responses.strict import check, strict_items, strict_response
from tests.api.responses.test_conversations import TALK, create_conversation
from tests.api.responses.test_input import message
from tests.api.responses.test_input_tokens import count_tokens
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import FAMILIES


def post_compaction(http: httpx.Client, **body: object) -> Json:
    answer = http.post("/v1/responses/compact", json={"model": "parrot", **body})
    shown: Json = json.loads(answer.text)
    output = shown["output"]
    assert isinstance(output, list)
    # The list begins with a user's messages, as OpenAI's does, but the client's type has none.
    check(
        CompactedResponse.model_validate_json(
            json.dumps({**shown, "output": output[-1:]}), strict=True
        )
    )
    for user in output[:-1]:
        check(OpenAIMessage.model_validate_json(json.dumps(user), strict=True))
    return shown


def read_summary(shown: Json) -> str:
    content = shown["output"][-1]["encrypted_content"]  # type: ignore[index]  # a list of objects
    summary = SUMMARY.unpack(content)
    assert summary is not None
    return summary


def item(summary: str) -> Message:
    return {"type": "compaction", "encrypted_content": SUMMARY.pack(summary)}


def test_the_users_messages_stay_and_the_rest_is_summarised(thinker_http: httpx.Client) -> None:
    shown = post_compaction(
        thinker_http, input=[*TALK, message("user", "And?")], instructions="Be kind."
    )
    output = shown["output"]
    assert isinstance(output, list)
    assert [each["type"] for each in output] == ["message", "message", "compaction"]
    assert [each["content"][0]["text"] for each in output[:-1]] == ["What is it?", "And?"]
    assert [each["id"].partition("_")[0] for each in output] == ["msg", "msg", "cmp"]
    summary = read_summary(shown)
    for said in (
        "Be kind.",
        "Be brief.",
        "What is it?",
        "I look.",
        "[call of look]\n{}",
        "[result of look]\nan owl",
    ):
        assert said in summary
    assert "hm" not in summary


def test_the_usage_counts_the_summary(thinker_http: httpx.Client) -> None:
    usage = post_compaction(thinker_http, input="Hello")["usage"]
    assert isinstance(usage, dict)
    assert usage["input_tokens"] > count_tokens(thinker_http, input="Hello")
    assert 0 < usage["output_tokens"] <= 4096 // 8
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_stored_response_is_compacted_with_its_history(thinker_http: httpx.Client) -> None:
    first = strict_response(
        thinker_http.post("/v1/responses", json={"model": "parrot", "input": "Hello"}).text
    )
    shown = post_compaction(thinker_http, previous_response_id=first.id)
    assert "[user]\nHello\n\n[assistant]\nHello" in read_summary(shown)
    shown = post_compaction(thinker_http, previous_response_id=first.id, input="Bye")
    roles = [each.get("role") for each in shown["output"]]  # type: ignore[attr-defined]  # a list
    assert roles == ["user", "user", None]


def test_the_conversation_continues_from_the_compacted_items(thinker_http: httpx.Client) -> None:
    output = post_compaction(
        thinker_http, input=[message("user", "Hello"), message("assistant", "Hi")]
    )["output"]
    assert isinstance(output, list)
    response = strict_response(
        thinker_http.post(
            "/v1/responses", json={"model": "parrot", "input": [*output, message("user", "Bye")]}
        ).text
    )
    assert response.output_text.startswith("Hello\n\n[What was said before, summarised]\n")
    assert response.output_text.endswith("[End of the summary]\n\nBye")
    again = post_compaction(thinker_http, previous_response_id=response.id)
    types = [each["type"] for each in again["output"]]  # type: ignore[attr-defined]  # a list
    assert types == ["message", "message", "compaction"]


USER, ANSWER = message("user", "Hi"), message("assistant", "Hello")
PLACES: list[list[Message]] = [
    [item("X")],
    [item("X"), USER],
    [USER, USER, item("X"), USER, USER],
    [USER, ANSWER, item("X"), ANSWER, USER],
    [USER, item("X"), item("Y"), ANSWER, USER],
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("items", PLACES)
def test_every_chat_template_takes_a_summary(family: str, items: list[Message]) -> None:
    messages = read_messages(read_input(items), None)
    template = ChatTemplate(
        {"default": FAMILIES[family]}, {"bos_token": "<s>", "eos_token": "</s>"}
    )
    prompt = PromptRenderer(byte_tokenizer(), template, 4096).render_chat(
        [each.fields for each in messages]
    )
    assert "summarised]\nX\n" in prompt.text


def test_users_messages_stay_apart_without_a_summary_among_them() -> None:
    items = [USER, USER, ANSWER, USER, item("X"), ANSWER, USER, USER]
    roles = [each.fields["role"] for each in read_messages(read_input(items), None)]
    assert roles == ["user", "user", "assistant", "user", "assistant", "user", "user"]


def test_a_summary_is_an_item_as_others_are(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER, item("X")])
    path = f"/v1/conversations/{conversation_id}/items"
    listed = strict_items(thinker_http.get(path, params={"order": "asc"}).text)
    assert [each.type for each in listed.data] == ["message", "compaction"]
    assert strict_items(thinker_http.get(path, params={"limit": 1}).text).data[0] == listed.data[1]


GOOD = SUMMARY.pack("What was said.")
FOREIGN = [
    "gAAAAABo",
    "",
    "ouzel-1.",
    "ouzel-1.AAAA",
    GOOD[:-1],
    GOOD[:-4],
    f"{GOOD}AAAA",
    GOOD.replace("ouzel-1", "ouzel-2"),
]
FOREIGN += [GOOD[:at] + ("A" if GOOD[at] != "A" else "B") + GOOD[at + 1 :] for at in (8, 20, 35)]


@pytest.mark.parametrize("content", [*FOREIGN, 7, None])
def test_an_altered_or_foreign_summary_is_refused(
    thinker_http: httpx.Client, content: object
) -> None:
    body: Json = {
        "model": "parrot",
        "input": [USER, {"type": "compaction", "encrypted_content": content}],
    }
    for path in ("/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens"):
        answer = thinker_http.post(path, json=body)
        assert (answer.status_code, read_error(answer)["param"]) == (
            400,
            "input[1].encrypted_content",
        )


def test_a_history_too_long_for_one_summary_is_summarised_in_parts(
    thinker_http: httpx.Client,
) -> None:
    talk = [
        message(role, f"{number} {'word ' * 20}")
        for number in range(60)
        for role in ("user", "assistant")
    ]
    shown = post_compaction(thinker_http, input=talk)
    usage = shown["usage"]
    assert isinstance(usage, dict) and usage["input_tokens"] > 3 * 4096
    # each summary in this test ends at its limit of tokens
    assert usage["output_tokens"] % (4096 // 8) == 0
    assert read_summary(shown).startswith(
        "<summary_of_what_was_before>\n<summary_of_what_was_before>\n"
    )
    assert len(shown["output"]) == 61  # type: ignore[arg-type]  # a list


def test_a_history_that_needs_too_many_summaries_is_refused_at_once() -> None:
    talk = [
        message(role, f"{number} {'word ' * 20}")
        for number in range(60)
        for role in ("user", "assistant")
    ]
    limits = LimitsConfig(max_prompts=2)
    with running_server({"max_model_len": 4096}, limits=limits) as server, server.client() as http:
        answer = http.post("/v1/responses/compact", json={"model": "parrot", "input": talk})
        error = read_error(answer)
        assert (answer.status_code, error["param"]) == (400, "input")
        assert (
            "must be summarised in <= 2 parts that fit into max_model_len (max_prompts), "
            "given about " in error["message"]
        )
        assert "request_success_total{" not in http.get("/metrics").text


def test_calls_count_by_their_arguments_when_the_number_of_summaries_is_estimated() -> None:
    calls: list[Json] = []
    for number in range(8):
        arguments = json.dumps({"text": "x" * 1000})
        calls.append(
            {
                "type": "function_call",
                "call_id": f"c{number}",
                "name": "write",
                "arguments": arguments,
            }
        )
        calls.append({"type": "function_call_output", "call_id": f"c{number}", "output": "ok"})
    talk = [message("user", "word " * 200) for _ in range(8)]
    limits = LimitsConfig(max_prompts=16)
    with running_server({"max_model_len": 4096}, limits=limits) as server, server.client() as http:
        assert read_summary(post_compaction(http, input=[*calls, *talk]))


def test_a_message_too_long_for_any_summary_is_refused(thinker_http: httpx.Client) -> None:
    body: Json = {"model": "parrot", "input": [USER, message("assistant", "word " * 800), USER]}
    answer = thinker_http.post("/v1/responses/compact", json=body)
    error = read_error(answer)
    assert (answer.status_code, error["code"], error["param"]) == (
        400,
        "context_length_exceeded",
        "input[1]",
    )
    assert "4096" in error["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": [{"type": "telepathy"}]}, "input[0].type"),
        ({"model": "another"}, "model"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"tools": [{"type": "function", "name": "x"}]}, "tools"),
        ({"image": {"context_compression": "auto"}}, "image"),
        ({"previous_response_id": "resp_9"}, "previous_response_id"),
    ],
)
def test_unsupported_fields_are_refused(
    thinker_http: httpx.Client, fields: Json, param: str
) -> None:
    answer = thinker_http.post(
        "/v1/responses/compact", json={"model": "parrot", "input": "Hi", **fields}
    )
    assert answer.status_code == (404 if param in ("model", "previous_response_id") else 400)
    assert read_error(answer)["param"] == param


def test_a_model_that_writes_nothing_is_a_fault(tmp_path: Path) -> None:
    defaults = SamplingDefaults(stop_strings="<conversation>")
    with running_server(sampling_defaults=defaults) as server:
        answer = httpx.post(
            f"{server.url}/v1/responses/compact", json={"model": "parrot", "input": "Hi"}
        )
    assert (answer.status_code, read_error(answer)["code"]) == (500, "engine_failed")
    assert "no summary" in read_error(answer)["message"]


def test_a_client_that_leaves_ends_the_summary() -> None:
    """The client leaves while the model is writing a long summary."""
    with running_server({"step_s": 0.02, "max_model_len": 2**16}) as server:
        address, body = ("127.0.0.1", server.port), json.dumps({"input": "word " * 2000}).encode()
        with socket.create_connection(address) as connection:
            head = (
                "POST /v1/responses/compact HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(head.encode() + body)
            metrics = f"{server.url}/metrics"
            wait_until(
                lambda: sum_metric(httpx.get(metrics).text, "vllm:generation_tokens_total") > 0
            )
        wait_until(lambda: server.engine.num_unfinished == 0)
        assert sum_metric(httpx.get(metrics).text, "ouzel_num_aborts_total") == 1


# the client's type of the list has no user's messages
@pytest.mark.filterwarnings("ignore:Pydantic serializer")
def test_the_clients_compact(thinker: RunningServer, thinker_client: openai.OpenAI) -> None:
    items: list[ResponseInputItemParam] = [{"role": "user", "content": "Hello"}]

    async def compact() -> CompactedResponse:
        async with openai.AsyncOpenAI(
            base_url=f"{thinker.url}/v1", api_key="none", max_retries=0
        ) as client:
            return await client.responses.compact(model="parrot", input=items)

    for made in (
        thinker_client.responses.compact(model="parrot", input=items),
        asyncio.run(compact()),
    ):
        assert made.output[-1].type == "compaction"
        response = thinker_client.responses.create(
            model="parrot",
            input=[*made.output, *items],  # type: ignore[list-item]
        )
        assert response.output_text.endswith("Hello")
