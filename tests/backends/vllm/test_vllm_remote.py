"""Tests the link to a vLLM server over HTTP, with a stand-in for the server."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

import msgspec
import pytest

from ouzel.backends.vllm.remote_choice import AnswerError, RemoteChoice
from ouzel.backends.vllm.remote_link import RemoteLink
from ouzel.backends.vllm.remote_server import ServerFacts
from ouzel.client.http_client import HttpClient
from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.engine_client.links import EngineLink
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import EngineRequest, Grammar
from ouzel.types.step_output import FinishReason, StepOutput
from tests.backends.vllm.test_vllm_engine import (
    BUDGET,
    FAILING,
    NESTED_GRAMMARS,
    find_final,
    list_tokens,
)
from tests.backends.vllm.vllm_server import VllmServer, vllm_server
from tests.engine.requests import make_request

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the system's certificates takes long


@asynccontextmanager
async def linked(url: str, *, api_key: str = "", **facts: object) -> AsyncIterator[EngineClient]:
    server = ServerFacts(
        url=url,
        model_type="parrot",
        vocab_size=2048,
        weights="fp8",
        dtype="bfloat16",
        max_num_seqs=64,
    )
    server = msgspec.structs.replace(server, **{"wait_s": 0.0, **facts})

    async def start(spec: EngineSpec) -> EngineLink:
        return RemoteLink(
            server,
            HttpClient(url, api_key=api_key, tls=NO_TLS),
            look_every_s=spec.heartbeat_every_s,
        )

    client = EngineClient(
        EngineSpec(factory="", options={}, heartbeat_every_s=0.05), start_link=start
    )
    try:
        await client.start()
        yield client
    finally:
        await client.close()


@pytest.fixture(scope="module")
def server() -> Iterator[VllmServer]:
    with vllm_server() as server:
        yield server


@pytest.fixture
async def client(server: VllmServer) -> AsyncIterator[EngineClient]:
    async with linked(server.url) as client:
        yield client


async def read_all(client: EngineClient, request: EngineRequest) -> list[StepOutput]:
    return [output async for outputs in client.submit(request) for output in outputs]


async def wait_for_state(client: EngineClient, state: EngineState) -> None:
    while client.state is not state:
        await asyncio.sleep(0.001)


async def test_info_comes_from_the_server(client: EngineClient, server: VllmServer) -> None:
    info = client.info
    assert (info.backend, info.model_type, info.device) == ("vllm", "parrot", server.url)
    assert (info.weights, info.precision) == ("fp8", "bfloat16 by vLLM 0.33.0")
    assert (info.max_model_len, info.kv_cache_dtype) == (4096, "fp8")
    assert (info.block_size, info.num_blocks) == (16, 1000)
    assert (info.has_grammars, info.has_beam_search) == (True, False)


async def test_streams_of_several_choices_run_concurrently(client: EngineClient) -> None:
    requests = [make_request([i, i + 1], n=2, max_tokens=10 + i % 5) for i in range(32)]
    answers = await asyncio.gather(*(read_all(client, request) for request in requests))

    for i, (request, outputs) in enumerate(zip(requests, answers, strict=True)):
        for index in (0, 1):
            assert list_tokens(outputs, request, index) == ([i, i + 1] * 7)[: 10 + i % 5]
            assert find_final(outputs, request, index).finish_reason is FinishReason.LENGTH


async def test_the_last_output_has_stop_token_hits_and_timing(client: EngineClient) -> None:
    request = make_request(range(100, 140), eos_token_ids=(103,), cache_salt="key:own")
    again = make_request(range(100, 140), eos_token_ids=(103,), cache_salt="key:own")
    await read_all(client, request)
    outputs = await read_all(client, again)

    assert list_tokens(outputs, again) == [100, 101, 102, 103]
    last = find_final(outputs, again)
    assert (last.finish_reason, last.stop_token_id) == (FinishReason.STOP, 103)
    assert last.num_cached_tokens == 32
    assert sum(output.timing is not None for output in outputs) == 1


async def test_answer_and_prompt_have_logprobs(client: EngineClient) -> None:
    streamed = make_request([1, 2], max_tokens=2, num_logprobs=2)
    scored = make_request([1, 2, 3], n=2, max_tokens=0, num_logprobs=1, num_prompt_logprobs=1)
    outputs = await read_all(client, streamed)
    whole = await read_all(client, scored)

    positions = [position for output in outputs for position in output.logprobs]
    assert [(each.sampled.token_id, each.rank, len(each.top)) for each in positions] == [
        (1, 3, 2),
        (2, 3, 2),
    ]
    assert [(entry.token_id, entry.logprob) for entry in positions[0].top] == [(7, -1.0), (8, -2.0)]
    last = find_final(whole, scored)
    assert [(each.sampled.token_id, each.rank) for each in last.prompt_logprobs] == [
        (2, 99),
        (3, 99),
    ]
    assert (list_tokens(whole, scored), last.logprobs) == ([], [])
    assert last.finish_reason is FinishReason.LENGTH
    assert not find_final(whole, scored, 1).prompt_logprobs


async def test_a_grammar_reaches_the_server_unchanged(
    client: EngineClient, server: VllmServer
) -> None:
    request = make_request(b"abc", grammar='start: "7-7"\n', eos_token_ids=(257,))
    outputs = await read_all(client, request)

    assert bytes(list_tokens(outputs, request)[:-1]) == b"7-7"
    assert server.bodies[-1]["sampling_params"]["structured_outputs"] == {
        "grammar": 'start: "7-7"\n'
    }
    assert server.bodies[-1]["reasoning_ended"] is True


async def test_closing_a_stream_aborts_the_request_on_the_server(
    client: EngineClient, server: VllmServer
) -> None:
    request = make_request([1], n=2, max_tokens=4000)
    async with aclosing(client.submit(request)) as stream:
        async for _ in stream:
            break
    while len(server.aborted) < 2:
        await asyncio.sleep(0.001)

    assert {name.rpartition("-")[0] for name in server.aborted} == {
        f"generate-tokens-{request.request_id}"
    }
    while server.num_open:
        await asyncio.sleep(0.001)


async def test_one_choice_may_be_aborted(client: EngineClient) -> None:
    request = make_request([1], n=2, max_tokens=400)
    outputs: list[StepOutput] = []
    async for new in client.submit(request):
        if not outputs:
            client.abort(request.request_id, 1)
        outputs += new

    assert find_final(outputs, request, 1).finish_reason is FinishReason.ABORT
    assert list_tokens(outputs, request, 0) == [1] * 400


async def test_statistics_come_from_the_servers_metrics(client: EngineClient) -> None:
    while (stats := client.stats()) is None or not stats.num_preemptions:
        await asyncio.sleep(0.001)
    assert (stats.num_blocks, stats.num_used_blocks, stats.num_preemptions) == (1000, 250, 3)


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (make_request([1], typical_p=0.5), "typical_p"),
        (make_request([1], priority=1), "priority"),
        (make_request([1], bad_words=((1, 2),)), "bad_words"),
        (
            msgspec.structs.replace(make_request([1]), reasoning_budget=BUDGET),
            "thinking_token_budget",
        ),
        (
            msgspec.structs.replace(make_request([1]), grammar=Grammar(NESTED_GRAMMARS, "tools")),
            "tools",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_error_names_a_field_that_the_server_does_not_support(
    client: EngineClient, request_: EngineRequest, param: str
) -> None:
    [output] = await read_all(client, request_)
    assert (output.finish_reason, output.error_param) == (FinishReason.REFUSED, param)


async def test_priorities_and_budgets_reach_a_server_with_support_for_them() -> None:
    with vllm_server(reasoning_config=object()) as server:
        async with linked(server.url, has_priorities=True) as client:
            request = msgspec.structs.replace(
                make_request([1], priority=-1, max_tokens=1), reasoning_budget=BUDGET
            )
            outputs = await read_all(client, request)
    assert find_final(outputs, request).finish_reason is FinishReason.LENGTH
    assert (
        server.bodies[-1]["priority"],
        server.bodies[-1]["sampling_params"]["thinking_token_budget"],
    ) == (-1, 5)


async def test_a_server_without_a_tokenizer_has_no_grammars() -> None:
    with vllm_server(has_tokenizer=False) as server:
        async with linked(server.url) as client:
            [output] = await read_all(client, make_request([1], grammar='start: "a"\n'))
            assert not client.info.has_grammars
    assert (output.finish_reason, output.error_param) == (FinishReason.REFUSED, "response_format")


async def test_a_refusal_of_the_server_has_its_message(client: EngineClient) -> None:
    [output] = await read_all(client, make_request([1], num_logprobs=21))
    assert output.finish_reason is FinishReason.REFUSED
    assert "Requested logprobs of 21" in (output.error or "")


async def test_a_request_that_fails_on_the_server_is_an_error(client: EngineClient) -> None:
    outputs = await read_all(client, make_request([FAILING]))
    assert outputs[-1].finish_reason is FinishReason.ERROR
    assert "Internal server error" in (outputs[-1].error or "")
    assert client.state is EngineState.READY


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"choices": [{"token_ids": [2048]}]},
            "token 2048 is not in this model's vocabulary of 2048",
        ),
        ({"choices": [{"token_ids": [-1]}]}, "token -1 is not"),
        ({"choices": [{"token_ids": [1, 2], "logprobs": None}]}, "has logprobs for 0 of 2 tokens"),
        (
            {"choices": [{"token_ids": [1], "finish_reason": "weary"}]},
            "has logprobs for 0 of 1 tokens",
        ),
        ({"choices": "nonsense"}, "Expected `array`"),
        ({}, "ended too early"),
    ],
)
def test_an_impossible_answer_of_the_server_is_an_error(answer: object, message: str) -> None:
    choice = RemoteChoice(make_request([1], max_tokens=4, num_logprobs=0), 0, vocab_size=2048)
    with pytest.raises((AnswerError, msgspec.DecodeError), match=re.escape(message)):
        choice.read(msgspec.json.encode(answer))
        choice.finish()


async def read_some(reader: asyncio.StreamReader) -> bytes:
    """Returns the next bytes; none after the end, and after a client has reset its connection."""
    try:
        return await reader.read(2**16)
    except ConnectionResetError:
        return b""


async def test_a_request_on_a_connection_that_closes_is_repeated(server: VllmServer) -> None:
    dropped = 0
    passing: list[asyncio.Task[None]] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dropped
        passing.append(cast(asyncio.Task[None], asyncio.current_task()))
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", server.port)
        back = asyncio.create_task(pump(there_reader, writer))
        while data := await read_some(reader):
            if b"4711" in data and not dropped:  # the request arrived, and its answer has not begun
                dropped += 1
                break
            there_writer.write(data)
        there_writer.close()
        await back

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await read_some(reader):
            writer.write(data)
        writer.close()

    proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with proxy, linked(f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}") as client:
        request = make_request([47, 11], max_tokens=3, seed=4711)
        outputs = await read_all(client, request)
    await asyncio.wait(passing)  # so that all connections are closed before the loop ends

    assert (dropped, list_tokens(outputs, request)) == (1, [47, 11, 47])


async def test_the_engine_is_ready_again_after_a_restart_of_the_server() -> None:
    with vllm_server() as server:
        async with linked(server.url, wait_s=60.0) as client:
            request = make_request([1], max_tokens=4000)
            outputs: list[StepOutput] = []
            async for new in client.submit(request):
                if not outputs:
                    await asyncio.to_thread(server.stop)
                outputs += new
            assert find_final(outputs, request).finish_reason is FinishReason.ERROR
            await wait_for_state(client, EngineState.RESTARTING)
            with vllm_server(port=server.port):
                await wait_for_state(client, EngineState.READY)
                assert len(await read_all(client, make_request([1], max_tokens=1))) > 0


async def test_an_unhealthy_server_makes_the_engine_restart() -> None:
    with vllm_server() as server:
        async with linked(server.url, wait_s=60.0) as client:
            server.is_healthy = False
            await wait_for_state(client, EngineState.RESTARTING)
            server.is_healthy = True
            await wait_for_state(client, EngineState.READY)


async def test_the_start_waits_for_a_slow_server() -> None:
    with vllm_server() as server:
        server.is_healthy = False
        asyncio.get_running_loop().call_later(0.2, setattr, server, "is_healthy", True)
        async with linked(server.url, wait_s=60.0) as client:
            assert client.state is EngineState.READY


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"vocab_size": 4096, "api_key": "key"},
            r"/inference/v1/generate: 400: Token id is out of vocabulary",
        ),
        ({"api_key": "wrong"}, r"/v1/models: 401: .*--engine-api-key"),
        ({"api_key": "key", "max_model_len": 5000}, "max_model_len: must be <= 4096"),
    ],
)
async def test_a_start_with_contradictions_is_refused(
    facts: dict[str, object], message: str
) -> None:
    with vllm_server(api_key="key") as server:
        with pytest.raises(ModelLoadError, match=message):
            async with linked(server.url, **facts):  # type: ignore[arg-type]
                pass
        async with linked(server.url, api_key="key", max_model_len=100) as client:
            assert client.info.max_model_len == 100


async def test_a_start_without_a_server_is_refused() -> None:
    with vllm_server() as server:
        url = server.url
    with pytest.raises(
        ModelLoadError, match=r"no engine has answered for 0 s: .*the server cannot be reached"
    ):
        async with linked(url):
            pass
