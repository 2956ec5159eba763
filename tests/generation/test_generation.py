"""Tests the way from sampling fields to parameters, and from token ids to events."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import msgspec
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.engine.core import EngineCore
from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.errors import ContextLengthExceeded, EngineFailed, EngineUnavailable, InvalidRequest
from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Finished,
    Generation,
    GenerationRequest,
    Output,
    PromptScored,
    ReasoningDelta,
    ServedModel,
    SeveralGenerations,
    system_fingerprint,
)
from ouzel.generation.sampling_values import fit_beams, fit_max_tokens, resolve_sampling
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.observability import EngineReading, Metrics, exposition
from ouzel.parsers.base import Parser
from ouzel.parsers.plain import PlainParser
from ouzel.prompts.render import Prompt, PromptRenderer
from ouzel.sampling import SamplingFields, SamplingParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.step_output import FinishReason, PositionLogprobs, TokenLogprob
from ouzel.wire.fold import FoldedChoice, fold
from tests.api.byte_tokens import FAIL, byte_tokenizer
from tests.api.requests import sum_metric
from tests.api.server_setup import FragileParser, build_output_format

FATAL = 1  # a byte


def resolve(fields: SamplingFields, defaults: SamplingDefaults | None = None) -> SamplingParams:
    return resolve_sampling(
        fields,
        defaults or SamplingDefaults(),
        max_tokens=10,
        num_logprobs=None,
        vocab_size=260,
        tokenizer=byte_tokenizer(),
    )


def test_a_value_comes_from_the_request_then_the_model_then_us() -> None:
    defaults = SamplingDefaults(temperature=0.6, top_p=0.9, top_k=20, repetition_penalty=1.1)
    ours = resolve(SamplingFields())
    assert (ours.temperature, ours.top_p, ours.top_k, ours.repetition_penalty) == (
        1.0,
        1.0,
        40,
        1.0,
    )
    models = resolve(SamplingFields(), defaults)
    assert (models.temperature, models.top_p, models.top_k, models.repetition_penalty) == (
        0.6,
        0.9,
        20,
        1.1,
    )
    asked = resolve(
        SamplingFields(temperature=0.2, top_p=1.0, top_k=5, repetition_penalty=1.0), defaults
    )
    assert (asked.temperature, asked.top_p, asked.top_k, asked.repetition_penalty) == (
        0.2,
        1.0,
        5,
        1.0,
    )


@pytest.mark.parametrize(
    ("fields", "top_k"),
    [
        (SamplingFields(temperature=0), 0),
        (SamplingFields(top_k=-1), 0),
        (SamplingFields(top_k=0), 0),
        (SamplingFields(temperature=0, top_k=7), 7),
    ],
)
def test_top_k_has_a_default_only_while_sampling(fields: SamplingFields, top_k: int) -> None:
    assert resolve(fields).top_k == top_k


@pytest.mark.parametrize(
    ("fields", "defaults", "temperature"),
    [
        (SamplingFields(), SamplingDefaults(do_sample=False), 0.0),
        (SamplingFields(), SamplingDefaults(do_sample=False, temperature=0.6), 0.0),
        (SamplingFields(), SamplingDefaults(do_sample=True), 1.0),
        (SamplingFields(), SamplingDefaults(do_sample=True, temperature=0.6), 0.6),
        (SamplingFields(temperature=0.4), SamplingDefaults(do_sample=False, temperature=0.6), 0.4),
        (SamplingFields(top_p=0.5), SamplingDefaults(do_sample=False), 0.0),
        (SamplingFields(do_sample=False), SamplingDefaults(temperature=0.6), 0.0),
        (SamplingFields(do_sample=False, temperature=0), SamplingDefaults(), 0.0),
        (SamplingFields(do_sample=True), SamplingDefaults(), 1.0),
        (SamplingFields(do_sample=True), SamplingDefaults(do_sample=False, temperature=0.6), 0.6),
        (SamplingFields(do_sample=True), SamplingDefaults(temperature=0.0), 1.0),
        (SamplingFields(do_sample=True, temperature=0.2), SamplingDefaults(do_sample=False), 0.2),
    ],
)
def test_do_sample_decides_if_no_temperature_is_given(
    fields: SamplingFields, defaults: SamplingDefaults, temperature: float
) -> None:
    assert resolve(fields, defaults).temperature == temperature


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            SamplingFields(do_sample=False, temperature=0.7),
            "must be 0 when do_sample is false, given 0.7",
        ),
        (
            SamplingFields(do_sample=True, temperature=0),
            "must be > 0 when do_sample is true, given 0",
        ),
    ],
)
def test_a_temperature_that_contradicts_do_sample_is_refused(
    fields: SamplingFields, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        resolve(fields)


def test_a_window_of_penalties_counts_only_with_a_penalty() -> None:
    on = resolve(SamplingFields(repetition_penalty=1.1, repeat_last_n=64))
    assert (on.repetition_penalty, on.repeat_last_n) == (1.1, 64)
    assert resolve(SamplingFields(repeat_last_n=64)).repeat_last_n == -1
    makers = SamplingDefaults(repetition_penalty=1.1)
    off = resolve(SamplingFields(presence_penalty=1, repeat_last_n=0), makers)
    assert (off.adjusts_logits, off.repeat_last_n) == (False, -1)


def test_the_makers_typical_p_and_ngram_size_count() -> None:
    params = resolve(SamplingFields(), SamplingDefaults(typical_p=0.9, no_repeat_ngram_size=3))
    assert (params.typical_p, params.no_repeat_ngram_size) == (0.9, 3)
    params = resolve(
        SamplingFields(typical_p=1, no_repeat_ngram_size=0),
        SamplingDefaults(typical_p=0.9, no_repeat_ngram_size=3),
    )
    assert (params.typical_p, params.no_repeat_ngram_size) == (1, 0)


@pytest.mark.parametrize(
    ("words", "token_ids"),
    [
        (["ab"], (b"ab", b" ab")),
        ([" ab", "ab"], (b"ab", b" ab")),
        (["\n", " "], (b"\n", b" \n", b" ", b"  ")),
        (["é"], (b"\xc3\xa9", b" \xc3\xa9")),
    ],
)
def test_bad_words_are_banned_with_and_without_a_space(
    words: list[str], token_ids: tuple[bytes, ...]
) -> None:
    assert resolve(SamplingFields(bad_words=words)).bad_words == tuple(map(tuple, token_ids))


def test_a_seed_is_drawn_only_when_none_is_given() -> None:
    assert resolve(SamplingFields(seed=0)).seed == 0
    assert resolve(SamplingFields()).seed != resolve(SamplingFields()).seed


@pytest.mark.parametrize(
    "token_id", ["260", "-1", "1.5", "x", "", "²", "٥", "05", "9" * 30, "9" * 5000]
)
def test_logit_bias_wants_token_ids(token_id: str) -> None:
    assert resolve(SamplingFields(logit_bias={"0": 1.0, "259": -2.0})).logit_bias == (
        (0, 1.0),
        (259, -2.0),
    )
    with pytest.raises(InvalidRequest, match="token ids from 0 to 259"):
        resolve(SamplingFields(logit_bias={token_id: 1.0}))


def test_max_tokens_is_the_given_number_or_the_room_that_is_left() -> None:
    def fit(wanted: int | None, *, is_strict: bool = False) -> int:
        return fit_max_tokens(
            wanted, is_strict=is_strict, num_prompt_tokens=90, max_model_len=100, param="max_tokens"
        )

    assert (fit(None), fit(3), fit(10), fit(11)) == (10, 3, 10, 10)
    assert (fit(None, is_strict=True), fit(10, is_strict=True)) == (10, 10)
    with pytest.raises(ContextLengthExceeded, match="max_tokens must be <= 10, given 11") as caught:
        fit(11, is_strict=True)
    assert caught.value.param == "max_tokens"


class BarParser:
    """A parser that takes the text before `|` as reasoning."""

    def __init__(self) -> None:
        self._is_reasoning = True

    def feed(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        for character in text:
            if character == "|":
                self._is_reasoning = False
            else:
                deltas.append(
                    ReasoningDelta(character) if self._is_reasoning else ContentDelta(character)
                )
        return deltas

    def finish(self, reason: FinishReason) -> list[Delta]:
        return [ContentDelta(f"<{reason}>")]


Run = Callable[..., Generation]
RunSeveral = Callable[..., SeveralGenerations]
request_ids = itertools.count()


@pytest.fixture
async def engine() -> AsyncIterator[EngineClient]:
    options: dict[str, object] = {
        "vocab_size": 260,
        "failing_token_id": FAIL,
        "fatal_token_id": FATAL,
    }
    client = EngineClient(
        EngineSpec(factory="tests.api.engines:create_parrot", options=options), in_thread=True
    )
    await client.start()
    yield client
    await client.close()


def make_model(
    engine: EngineClient, make_parser: Callable[[], Parser] = PlainParser
) -> ServedModel:
    tokenizer = byte_tokenizer()
    return ServedModel(
        names=("parrot",),
        tokenizer=tokenizer,
        renderer=PromptRenderer(tokenizer, None, 4096),
        sampling_defaults=SamplingDefaults(),
        engine=engine,
        output_format=build_output_format(make_parser),
        vocabulary=GrammarVocabulary({}, tokenizer.vocab_size),
        created=0,
        system_fingerprint="fp",
    )


def make_request(
    said: str,
    *,
    max_tokens: int = 20,
    stop: tuple[str, ...] = (),
    n: int = 1,
    num_prompt_logprobs: int | None = None,
) -> GenerationRequest:
    """Makes a request for which the engine repeats `said` for ever."""
    return GenerationRequest(
        request_id=f"r{next(request_ids)}",
        prompt=Prompt(said, byte_tokenizer().encode(said, add_special_tokens=False)),
        params=SamplingParams(
            max_tokens=max_tokens, num_logprobs=0, num_prompt_logprobs=num_prompt_logprobs
        ),
        n=n,
        best_of=n,
        stop_strings=stop,
        include_stop_str_in_output=False,
        skip_special_tokens=True,
        continues_prompt=False,
        parses_output=True,
        priority=0,
        cache_salt="",
        arrival_s=time.perf_counter(),
    )


@pytest.fixture
def run(engine: EngineClient) -> Run:
    def run(
        said: str,
        *,
        max_tokens: int = 20,
        stop: tuple[str, ...] = (),
        n: int = 1,
        make_parser: Callable[[], Parser] = PlainParser,
        metrics: Metrics | None = None,
    ) -> Generation:
        asked = make_request(said, max_tokens=max_tokens, stop=stop, n=n)
        return Generation(
            asked, make_model(engine, make_parser), metrics or Metrics("parrot"), key_id=None
        )

    return run


@pytest.fixture
def run_several(engine: EngineClient) -> RunSeveral:
    def run_several(*requests: GenerationRequest) -> SeveralGenerations:
        return SeveralGenerations(requests, make_model(engine), Metrics("parrot"), key_id=None)

    return run_several


async def collect(
    generation: Generation | SeveralGenerations, engine: EngineClient, *, is_slow: bool = False
) -> list[Event]:
    """Collects the events; a slow reader lets the engine finish after the first output.

    All outputs but the first then come as one.
    """
    events: list[Event] = []
    async for new in generation.events():
        events += new
        if is_slow:
            await wait_until_idle(engine)
    return events


async def wait_until_idle(engine: EngineClient) -> None:
    while (stats := engine.stats()) is not None and stats.num_running:
        await asyncio.sleep(0.001)


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


async def test_each_of_several_scored_prompts_names_its_first_choice(engine: EngineClient) -> None:
    requests = [make_request(said, n=2, num_prompt_logprobs=0) for said in ("abc", "de")]

    events = await collect(
        SeveralGenerations(requests, make_model(engine), Metrics("parrot"), key_id=None), engine
    )

    scored = {
        event.index: len(event.logprobs) for event in events if isinstance(event, PromptScored)
    }
    assert scored == {0: 2, 2: 1}


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


async def test_leaving_early_aborts_and_counts(run: Run, engine: EngineClient) -> None:
    leaving = run("abc", max_tokens=4000, n=2)
    async with aclosing(leaving.events()) as events:
        await anext(events)
    assert leaving.finish_reasons == ["abort", "abort"]
    assert fold(await collect(run("abc", max_tokens=3), engine))[0].content == "abc"
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_a_failure_is_raised_and_counted(run: Run, engine: EngineClient) -> None:
    failing = run("ab<|fail|>")
    with pytest.raises(EngineFailed, match="scripted failure"):
        await collect(failing, engine)
    assert failing.finish_reasons == ["error"]


def create_random_model(options: dict[str, object]) -> EngineCore:
    return EngineCore(FakeRunner(vocab_size=260))


async def test_a_request_that_leaves_itself_no_token_is_refused() -> None:
    engine = EngineClient(
        EngineSpec(factory="tests.generation.test_generation:create_random_model", options={}),
        in_thread=True,
    )
    await engine.start()
    params = SamplingParams(max_tokens=20, allowed_token_ids=(5, 6), no_repeat_ngram_size=1)
    refused = Generation(
        msgspec.structs.replace(make_request("abc"), params=params),
        make_model(engine),
        Metrics("parrot"),
        key_id=None,
    )

    with pytest.raises(
        InvalidRequest, match="no token is left to choose: allowed_token_ids, no_repeat_ngram_size"
    ):
        await collect(refused, engine)

    assert refused.finish_reasons == ["refused"]
    await engine.close()


async def test_a_bug_of_ours_is_counted_as_an_error(run: Run, engine: EngineClient) -> None:
    broken = run("ab#", make_parser=FragileParser, n=2)
    with pytest.raises(RuntimeError):
        await collect(broken, engine)
    assert broken.finish_reasons == ["error", "error"]


def read_metrics(metrics: Metrics, *names: str) -> list[float]:
    reading = EngineReading(num_restarts=0, step_age_s=0, block_size=16, num_blocks=1)
    text = exposition([(metrics, [reading])])
    return [sum_metric(text, f"ouzel_{name}") for name in names]


async def test_tokens_are_counted_as_they_come(run: Run, engine: EngineClient) -> None:
    metrics = Metrics("parrot")
    generation = run("abc", max_tokens=4000, metrics=metrics)
    async with aclosing(generation.events()) as events:
        await anext(events)
        num_tokens = generation.usage().completion_tokens
        assert read_metrics(metrics, "prompt_tokens_total", "generation_tokens_total") == [
            3,
            num_tokens,
        ]
    assert read_metrics(metrics, "e2e_request_latency_seconds_count", "num_aborts_total") == [0, 1]


async def test_a_request_that_only_scores_is_counted_without_a_token(engine: EngineClient) -> None:
    metrics = Metrics("parrot")
    asked = make_request("abc", n=2, max_tokens=0, num_prompt_logprobs=0)
    scored, *ends = await collect(
        Generation(asked, make_model(engine), metrics, key_id=None), engine
    )

    assert isinstance(scored, PromptScored)
    assert ends == [Finished(index, FinishReason.LENGTH, None) for index in (0, 1)]
    assert read_metrics(metrics, "prompt_tokens_total", "generation_tokens_total") == [3, 0]
    assert read_metrics(
        metrics, "e2e_request_latency_seconds_count", "time_to_first_token_seconds_count"
    ) == [1, 0]


async def test_a_request_that_the_engine_refuses_counts_no_tokens(
    run: Run, engine: EngineClient
) -> None:
    metrics = Metrics("parrot")
    generation = run("abc", metrics=metrics)
    await engine.close()
    with pytest.raises(EngineUnavailable):
        await collect(generation, engine)
    assert read_metrics(
        metrics, "prompt_tokens_total", "request_prompt_tokens_count", "num_aborts_total"
    ) == [0, 0, 0]
    assert generation.finish_reasons == ["error"]


@pytest.mark.parametrize("is_slow", [False, True])
async def test_several_prompts_give_the_same_as_each_alone(
    run: Run, run_several: RunSeveral, engine: EngineClient, is_slow: bool
) -> None:
    asked: list[dict[str, object]] = [{"max_tokens": 7}, {"max_tokens": 40}, {"stop": ("bca",)}]
    requests = [make_request("abc", n=2, **fields) for fields in asked]  # type: ignore[arg-type]
    together = run_several(*requests)
    choices = fold(await collect(together, engine, is_slow=is_slow))
    alone = [run("abc", n=2, **fields) for fields in asked]
    expected = [choice for each in alone for choice in fold(await collect(each, engine))]
    assert [choice.index for choice in choices] == [0, 1, 2, 3, 4, 5]
    assert [choice.content for choice in choices] == [choice.content for choice in expected]
    assert together.usage().completion_tokens == sum(
        each.usage().completion_tokens for each in alone
    )
    assert together.usage().prompt_tokens == 9
    assert together.finish_reasons == ["length", "length", "length", "length", "stop", "stop"]
    assert together.ttft_s is not None


async def test_a_slow_reader_of_several_prompts_gets_few_large_outputs(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    events = await collect(
        run_several(*(make_request("abc", max_tokens=300) for _ in range(4))), engine, is_slow=True
    )
    assert len(events) < 40


async def test_one_prompt_that_fails_ends_all(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    failing = run_several(make_request("abc", max_tokens=4000), make_request("ab<|fail|>"))
    with pytest.raises(EngineFailed, match="scripted failure"):
        await collect(failing, engine)
    assert failing.finish_reasons == ["abort", "error"]
    await collect(run_several(make_request("abc"), make_request("abc")), engine)
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_outputs_that_came_with_the_failure_of_another_prompt_are_given_out(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    failing = run_several(make_request("abc", max_tokens=50), make_request("ab<|fail|>"))
    events: list[Event] = []
    with pytest.raises(EngineFailed, match="scripted failure"):
        async for new in failing.events():
            events += new
            await wait_until_idle(engine)  # the rest and the failure then come as one

    assert [choice.content for choice in fold(events) if choice.index == 0] == [("abc" * 17)[:50]]
    assert failing.finish_reasons == ["length", "error"]


async def test_an_engine_that_dies_ends_all_prompts_and_comes_back(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    dying = run_several(
        make_request("abc", max_tokens=4000, n=2), make_request(f"ab{chr(FATAL)}", n=2)
    )
    with pytest.raises(EngineFailed, match="scripted death"):
        await collect(dying, engine)
    assert sorted(dying.finish_reasons) in (["abort", "abort", "error", "error"], ["error"] * 4)

    while engine.state is not EngineState.READY:
        await asyncio.sleep(0.001)
    assert {
        choice.content
        for choice in fold(
            await collect(run_several(make_request("abc"), make_request("abc")), engine)
        )
    } == {"abcabcabcabcabcabcab"}


@pytest.mark.parametrize("num_logprobs", [None, 0])
async def test_the_best_show_logprobs_only_when_asked(
    engine: EngineClient, num_logprobs: int | None
) -> None:
    asked = make_request("abc", stop=("ca",))
    params = msgspec.structs.replace(asked.params, num_logprobs=num_logprobs)
    generation = Generation(
        msgspec.structs.replace(asked, best_of=3, params=params),
        make_model(engine),
        Metrics("parrot"),
        key_id=None,
    )

    [best] = fold(await collect(generation, engine))

    assert best.content == "ab"
    assert len(best.logprobs) == (0 if num_logprobs is None else 2)
    assert len(best.finished.hidden_logprobs) == (0 if num_logprobs is None else 2)
    assert generation.usage().completion_tokens == 12
    assert generation.finish_reasons == ["stop"] * 3


async def test_leaving_before_the_best_are_known_aborts_all_samples(engine: EngineClient) -> None:
    asked = msgspec.structs.replace(make_request("abc", max_tokens=4000), best_of=3)
    generation = Generation(asked, make_model(engine), Metrics("parrot"), key_id=None)
    reader = asyncio.create_task(collect(generation, engine))
    while generation.usage().completion_tokens < 30:
        await asyncio.sleep(0.001)

    reader.cancel()
    await asyncio.wait([reader])

    assert generation.finish_reasons == ["abort"] * 3
    await collect(
        Generation(make_request("abc"), make_model(engine), Metrics("parrot"), key_id=None), engine
    )
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_leaving_several_prompts_early_aborts_all(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    leaving = run_several(*(make_request("abc", max_tokens=4000, n=2) for _ in range(3)))
    async with aclosing(leaving.events()) as events:
        await anext(events)
    assert leaving.finish_reasons == ["abort"] * 6
    await collect(run_several(make_request("abc"), make_request("abc")), engine)
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


ROOM = EngineInfo(
    backend="fake",
    model_type="fake",
    device="none",
    weights="none",
    precision="f32",
    kv_cache_dtype="none",
    vocab_size=10,
    max_model_len=40,
    block_size=4,
    num_blocks=10,
    max_num_seqs=8,
    max_num_batched_tokens=16,
    load_s=0.0,
)


@pytest.mark.parametrize(
    ("num_prompt_tokens", "width", "left"), [(8, 1, 32), (8, 4, 8), (9, 4, 7), (11, 8, 1)]
)
def test_beams_get_as_many_tokens_as_fit_into_the_cache(
    num_prompt_tokens: int, width: int, left: int
) -> None:
    def fit(max_tokens: int, *, is_strict: bool) -> int:
        return fit_beams(
            max_tokens,
            width,
            is_strict=is_strict,
            num_prompt_tokens=num_prompt_tokens,
            info=ROOM,
            param="max_tokens",
            width_param="num_beams",
        )

    assert fit(40, is_strict=False) == fit(left, is_strict=True) == left
    with pytest.raises(
        InvalidRequest,
        match=f"max_tokens must be <= {left} with {width} beams in this KV cache, given {left + 1}",
    ):
        fit(left + 1, is_strict=True)


def test_a_prompt_that_leaves_beams_no_room_is_refused() -> None:
    with pytest.raises(
        InvalidRequest, match="num_beams must be smaller for a prompt of 36 tokens, given 8 beams"
    ):
        fit_beams(
            4,
            8,
            is_strict=False,
            num_prompt_tokens=36,
            info=ROOM,
            param="max_tokens",
            width_param="num_beams",
        )


def test_an_engine_with_other_answers_has_another_fingerprint() -> None:
    """With `--deterministic` another kernel computes the tokens."""
    others = (
        {"precision": "bf16"},
        {"kv_cache_dtype": "u8"},
        {"weights": "int8"},
        {"is_deterministic": True},
    )
    engines = [ROOM, *(msgspec.structs.replace(ROOM, **other) for other in others)]

    assert len({system_fingerprint("m", engine, "1") for engine in engines}) == len(engines)
    assert system_fingerprint("m", ROOM, "1") == system_fingerprint("m", ROOM, "1")
