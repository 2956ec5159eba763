"""A benchmark finds the fields that a server takes, sends the load, and adds its remarks."""

import asyncio
import io
from dataclasses import replace

from ouzel.bench.benchmark import Outcome, Plan, benchmark
from ouzel.bench.dataset import Line
from ouzel.bench.endpoints import CHAT, Form
from ouzel.bench.lengths import Fixed
from ouzel.bench.load import Load
from ouzel.bench.target import Target
from ouzel.bench.workloads import Shape, Workload
from ouzel.client.http_client import HttpClient
from tests.client.canned_server import Answers, canned_server, event_stream, json_answer

DONE = '{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}'
CHATS = "/v1/chat/completions"
ONE_AT_A_TIME = Load(max_concurrency=1)
SHAPE = Shape(Workload.RANDOM, num_requests=2, input_lens=Fixed(3), output_lens=Fixed(1))
OF_THREE_TURNS = replace(SHAPE, workload=Workload.MULTI_TURN, num_requests=3, num_turns=3)


def answered(path: str) -> bytes:
    return event_stream(DONE, "[DONE]") if path == CHATS else json_answer("404 Not Found", "{}")


async def run_benchmark(
    answer: Answers,
    *prompts: str,
    stopping: asyncio.Event | None = None,
    loads: tuple[Load, ...] = (ONE_AT_A_TIME,),
    shape: Shape = SHAPE,
    num_warmup: int = 0,
) -> Outcome:
    """Runs a benchmark with these prompts, or with random prompts of the shape without any."""
    lines = tuple(Line(prompt=prompt) for prompt in prompts)
    plan = Plan(shape, lines, loads, num_warmup=num_warmup, seed=0, limits=None)
    async with canned_server(answer) as server:
        target = Target(HttpClient(server.url), CHAT, "m", Form(), {})
        try:
            return await benchmark(
                target, plan, stopping=stopping or asyncio.Event(), terminal=io.StringIO()
            )
        finally:
            await target.client.close()


async def test_each_run_has_lines_of_its_own_as_long_as_there_are_some() -> None:
    asked: list[str] = []

    def answer(path: str, body: bytes) -> bytes:
        asked.extend(word for word in ("alpha", "beta", "gamma", "delta") if word.encode() in body)
        return answered(path)

    loads = (ONE_AT_A_TIME, ONE_AT_A_TIME)
    outcome = await run_benchmark(answer, "alpha", "beta", "gamma", "delta", loads=loads)
    assert asked == ["alpha", "beta", "gamma", "delta"]
    assert not any("more than once" in remark for remark in outcome.remarks)


async def test_prompts_that_are_asked_again_are_remarked_upon() -> None:
    outcome = await run_benchmark(
        lambda path, _: answered(path), "alpha", "beta", loads=(ONE_AT_A_TIME, ONE_AT_A_TIME)
    )
    assert any(
        "prompts of the file were sent more than once" in remark for remark in outcome.remarks
    )


async def test_loads_that_were_not_begun_when_it_was_stopped_are_no_runs() -> None:
    stopping = asyncio.Event()

    def answer(path: str, body: bytes) -> bytes:
        if b"omega" in body:
            stopping.set()
        return answered(path)

    outcome = await run_benchmark(
        answer, "alpha", "omega", stopping=stopping, loads=(ONE_AT_A_TIME,) * 3
    )
    assert len(outcome.runs) == 1
    assert outcome.is_stopped
    assert "stopped before the end" in outcome.remarks[-1]


async def test_turns_that_follow_a_failed_one_are_remarked_upon() -> None:
    num_chats = 0

    def answer(path: str, _: bytes) -> bytes:
        nonlocal num_chats
        num_chats += path == CHATS
        return answered(path) if num_chats == 1 else json_answer("500 No", "{}")

    outcome = await run_benchmark(answer, shape=OF_THREE_TURNS)
    assert "2 requests were not sent, because the turn before them failed" in outcome.remarks


async def test_as_many_requests_warm_up_as_was_asked_for_whatever_is_measured() -> None:
    paths: list[str] = []

    def answer(path: str, _: bytes) -> bytes:
        paths.append(path)
        return answered(path)

    await run_benchmark(answer, shape=OF_THREE_TURNS, num_warmup=4)
    assert paths.count(CHATS) == 1 + 4 + 3
