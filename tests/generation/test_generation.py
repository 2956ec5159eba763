"""A generation turns token ids into events of text, reasoning, logprobs and ends."""

import time

import msgspec
import pytest

from ouzel.engine_client import EngineClient
from ouzel.generation import (
    ContentDelta,
    Finished,
    Generation,
    Output,
    PromptScored,
)
from ouzel.observability import Metrics
from ouzel.types.step_output import FinishReason, PositionLogprobs, TokenLogprob
from ouzel.wire.fold import FoldedChoice, fold
from tests.generation.generations import BarParser, Run, collect, make_model, make_request


def show(choices: list[FoldedChoice]) -> list[object]:
    return [
        (choice.content, choice.reasoning, len(choice.logprobs), choice.finished)
        for choice in choices
    ]


@pytest.mark.parametrize("stop", [(), ("añ",), ("zz", "ba"), ("bañab",), ("\ufffd",)])
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 7, 20])
async def test_no_result_depends_on_how_many_tokens_came_at_once(
    run: Run, engine: EngineClient, stop: tuple[str, ...], max_tokens: int
) -> None:
    quick, slow = (
        run("añb", max_tokens=max_tokens, stop=stop, n=2, make_parser=BarParser) for _ in range(2)
    )
    quick_events = await collect(quick, engine)
    slow_events = await collect(slow, engine, is_slow=True)
    assert show(fold(slow_events)) == show(fold(quick_events))
    slow_usage, quick_usage = (
        msgspec.structs.replace(each.usage(), durations=None) for each in (slow, quick)
    )
    assert slow_usage == quick_usage


async def test_durations_are_parts_of_the_whole(run: Run, engine: EngineClient) -> None:
    generation = run("añb", max_tokens=20, n=2)
    assert generation.usage().durations is None
    begun_s = time.perf_counter()
    await collect(generation, engine)
    durations = generation.usage().durations
    assert durations is not None
    assert durations.output_s > 0 <= durations.prompt_s
    assert durations.prompt_s + durations.output_s <= time.perf_counter() - begun_s


@pytest.mark.parametrize(("said", "is_slow"), [("abc", False), ("abc", True), ("a", False)])
async def test_a_scored_prompt_is_the_first_event(
    engine: EngineClient, said: str, is_slow: bool
) -> None:
    asked = make_request(said, n=2, num_prompt_logprobs=0)

    first, *rest = await collect(
        Generation(asked, make_model(engine), Metrics("parrot"), key_id=None),
        engine,
        is_slow=is_slow,
    )

    assert isinstance(first, PromptScored)
    assert [position.sampled.token_id for position in first.logprobs] == list(said.encode()[1:])
    assert not any(isinstance(event, PromptScored) for event in rest)


async def test_tokens_after_a_stop_string_are_not_counted(run: Run, engine: EngineClient) -> None:
    generation = run("abc", stop=("bca",))
    (choice,) = fold(await collect(generation, engine, is_slow=True))
    assert choice.content == "a"
    hidden = [PositionLogprobs(TokenLogprob(token_id, 0.0), ()) for token_id in b"bca"]
    assert choice.finished == Finished(0, FinishReason.STOP, "bca", hidden)
    assert generation.usage().completion_tokens == len("abca")
    assert len(choice.logprobs) == len("a")


async def test_a_held_back_text_comes_out_at_the_end(run: Run, engine: EngineClient) -> None:
    (choice,) = fold(await collect(run("abc", max_tokens=4, stop=("caX",)), engine))
    assert choice.content == "abca"
    assert len(choice.logprobs) == len("abca")


@pytest.mark.parametrize(
    ("stop", "text"), [("bñc", "a"), ("\u0303", "abñcabñcabñcab"), ("ca", "abñ")]
)
async def test_logprobs_come_and_go_with_their_text(
    run: Run, engine: EngineClient, stop: str, text: str
) -> None:
    events = await collect(
        run("abñc", stop=(stop,), max_tokens=len("abñcabñcabñcab".encode())), engine
    )
    shown_bytes = b""
    for event in events:
        if isinstance(event, Output):
            shown_bytes += bytes(position.sampled.token_id for position in event.logprobs)
            shown_text = "".join(
                delta.text for delta in event.deltas if isinstance(delta, ContentDelta)
            )
            assert (
                bytes(position.sampled.token_id for position in event.logprobs)
                == shown_text.encode()
            )
    assert shown_bytes == text.encode()


async def test_reasoning_is_parsed_and_counted(run: Run, engine: EngineClient) -> None:
    generation = run("hm|yes.", max_tokens=7, make_parser=BarParser)
    (choice,) = fold(await collect(generation, engine))
    assert (choice.reasoning, choice.content) == ("hm", "yes.<length>")
    assert generation.usage().reasoning_tokens == len("hm")
