"""Makes models, requests and generations on the fake engine, and collects their events."""

import asyncio
import itertools
import time
from collections.abc import Callable

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.engine_client import EngineClient
from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Generation,
    GenerationRequest,
    ReasoningDelta,
    ServedModel,
    SeveralGenerations,
)
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Parser
from ouzel.parsers.plain import PlainParser
from ouzel.prompts.prompt import Prompt
from ouzel.prompts.render import PromptRenderer
from ouzel.sampling import SamplingParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.step_output import FinishReason
from tests.api.byte_tokens import byte_tokenizer
from tests.api.server_setup import build_output_format

FATAL = 1  # a byte


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
