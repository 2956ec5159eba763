"""A measurement counts chunks and tokens, and knows a failure."""

import pytest

from ouzel.bench.conversation import user_turn
from ouzel.bench.endpoints import CHAT, COMPLETIONS, RESPONSES, Endpoint
from ouzel.bench.measurement import Measurement, measure
from ouzel.client.http_client import HttpClient
from tests.client.canned_server import canned_server, event_stream, json_answer

ROLE = (
    '{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, '
    '"finish_reason": null}]}'
)
END = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}'
COUNTS = (
    '{"prompt_tokens": 20, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}'
)
NO_UTF8 = event_stream('{"choices": [{"delta": {"content": "~"}}]}').replace(b"~", b"\xe9")
USAGE = '{"choices": [], "usage": ' + COUNTS + "}"


def delta(**fields: str) -> str:
    content = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    return (
        '{"choices": [{"index": 0, "delta": {'
        + content
        + '}, "finish_reason": null}], "usage": null}'
    )


async def measure_answer(answer: bytes, endpoint: Endpoint = CHAT) -> Measurement:
    async with canned_server(answer) as server:
        client = HttpClient(server.url)
        try:
            return await measure(client, endpoint, b"{}", user_turn("", max_tokens=7, input_len=5))
        finally:
            await client.close()


async def test_chunks_with_output_are_timed_and_the_servers_count_is_taken() -> None:
    reasoning, text = delta(reasoning_content='"so"'), delta(content='"yes"')
    call = delta(tool_calls='[{"index": 0}]')
    found = await measure_answer(event_stream(ROLE, reasoning, text, call, END, USAGE, "[DONE]"))
    assert (found.error, found.text, found.answer) == ("", "soyes", "yes")
    assert len(found.itls_s) == 2
    assert (found.input_len, found.cached_len, found.output_len, found.is_counted) == (
        20,
        4,
        7,
        True,
    )
    assert 0 < found.ttft_s <= found.e2el_s
    assert sum(found.itls_s) <= found.e2el_s - found.ttft_s + 1e-9


async def test_chunks_are_counted_where_the_server_counts_nothing() -> None:
    found = await measure_answer(event_stream(delta(content='"a"'), delta(content='"b"'), END))
    assert (found.input_len, found.output_len, found.is_counted) == (5, 2, False)


async def test_chunks_are_counted_if_the_server_reports_no_tokens() -> None:
    usage = '{"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}'
    found = await measure_answer(
        event_stream(delta(content='"a"'), delta(content='"b"'), END, usage)
    )
    assert (found.input_len, found.output_len, found.is_counted) == (5, 2, False)


async def test_an_empty_finish_reason_is_no_end() -> None:
    open_chunk = '{"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": ""}]}'
    assert (await measure_answer(event_stream(open_chunk, END))).error == ""
    assert "no finish reason" in (await measure_answer(event_stream(open_chunk))).error


async def test_an_answer_of_tokens_without_text_is_an_answer() -> None:
    found = await measure_answer(event_stream(ROLE, END, USAGE))
    assert (found.error, found.output_len, found.itls_s) == ("", 7, ())
    assert found.ttft_s == found.e2el_s > 0


async def test_content_may_have_parts() -> None:
    thought = '[{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]'
    parts = (
        delta(content=thought),
        delta(content='[{"type": "text", "text": "yes"}]'),
        delta(content='" no"'),
    )
    found = await measure_answer(event_stream(*parts, END))
    assert (found.error, found.text, found.answer, len(found.itls_s)) == (
        "",
        "soyes no",
        "yes no",
        2,
    )


async def test_lists_and_counts_may_be_null() -> None:
    usage = '{"choices": null, "usage": {"prompt_tokens": null, "completion_tokens": 3}}'
    found = await measure_answer(event_stream(delta(content='"a"', tool_calls="null"), END, usage))
    assert (found.error, found.input_len, found.output_len) == ("", 5, 3)


async def test_completions_have_their_own_chunks() -> None:
    text = '{"choices": [{"index": 0, "text": "a", "finish_reason": null}]}'
    end = '{"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}'
    found = await measure_answer(event_stream(text, text, end, USAGE), COMPLETIONS)
    assert (found.text, found.output_len, len(found.itls_s)) == ("aa", 7, 1)


async def test_responses_have_their_own_events() -> None:
    usage = '{"input_tokens": 9, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 1}}'
    events = (
        '{"type": "response.created", "response": {"usage": null}}',
        '{"type": "response.reasoning_text.delta", "delta": "so"}',
        '{"type": "response.output_text.delta", "delta": "yes"}',
        '{"type": "response.function_call_arguments.delta", "delta": "{"}',
        '{"type": "response.completed", "response": {"usage": ' + usage + "}}",
    )
    found = await measure_answer(event_stream(*events), RESPONSES)
    assert (found.error, found.text, found.answer, len(found.itls_s)) == ("", "soyes", "yes", 2)
    assert (found.input_len, found.cached_len, found.output_len) == (9, 1, 3)


@pytest.mark.parametrize(
    ("answer", "endpoint", "error"),
    [
        (json_answer("500 No", '{"error": {"message": "broken"}}'), CHAT, "500: broken"),
        (event_stream(delta(content='"a"'), '{"error": {"message": "lost"}}'), CHAT, "lost"),
        (event_stream('{"error": "lost"}'), COMPLETIONS, "lost"),
        (
            event_stream(delta(content='"a"'), '{"object": "error", "message": "lost"}', "[DONE]"),
            CHAT,
            "lost",
        ),
        (event_stream("{"), CHAT, "a chunk cannot be read"),
        (NO_UTF8, CHAT, "a chunk cannot be read"),
        (event_stream(delta(content='"a"'))[:-5], CHAT, "broke off"),
        (event_stream(ROLE), CHAT, "no output"),
        (event_stream(delta(content='"a"'), "[DONE]"), CHAT, "no finish reason"),
        (
            event_stream('{"type": "response.failed", "response": {"error": {"message": "lost"}}}'),
            RESPONSES,
            "lost",
        ),
        (event_stream('{"type": "error", "message": "lost"}'), RESPONSES, "lost"),
    ],
)
async def test_a_failure_is_a_measurement_with_an_error(
    answer: bytes, endpoint: Endpoint, error: str
) -> None:
    found = await measure_answer(answer, endpoint)
    assert error in found.error
    assert not found.is_complete
