"""Makes the conversations of a workload: random, shared prefixes, several turns, or tools."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from ouzel.bench.conversation import Conversation, Turn, user_turn
from ouzel.bench.lengths import Lengths, draw_length
from ouzel.bench.prompt_texts import PromptTexts
from ouzel.bench.tools import FUNCTIONS

_MAX_TOGETHER = 16  # conversations made at once; each text needs requests to the server's tokenizer


class Workload(StrEnum):
    RANDOM = "random"
    SHARED_PREFIX = "shared-prefix"
    MULTI_TURN = "multi-turn"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of the requests of a run; the last conversation may have fewer turns."""

    workload: Workload
    num_requests: int  # each turn is a request
    input_lens: Lengths
    output_lens: Lengths
    prefix_len: int = 0  # tokens that prompts share, before their own text
    num_prefixes: int = 1
    num_turns: int = 1


async def make_conversations(shape: Shape, texts: PromptTexts, seed: str) -> list[Conversation]:
    """Makes the conversations; the same seed makes the same conversations. Raises ApiFailure."""
    num_turns = shape.num_turns if shape.workload is Workload.MULTI_TURN else 1
    sizes = [
        min(num_turns, shape.num_requests - start)
        for start in range(0, shape.num_requests, num_turns)
    ]
    prefixes = await _prefixes(shape, texts, seed)
    tools = FUNCTIONS if shape.workload is Workload.TOOLS else ()
    places = asyncio.Semaphore(_MAX_TOGETHER)

    async def make(index: int, size: int) -> Conversation:
        rng = random.Random(f"{seed}:{index}")
        async with places:
            prefix = prefixes[index % len(prefixes)] if prefixes else ""
            turns = [
                await _turn(shape, texts, rng, prefix if number == 0 else "")
                for number in range(size)
            ]
        return Conversation(tuple(turns), tools)

    return await asyncio.gather(*(make(index, size) for index, size in enumerate(sizes)))


async def _prefixes(shape: Shape, texts: PromptTexts, seed: str) -> Sequence[str]:
    match shape.workload:
        case Workload.SHARED_PREFIX:
            numbers = range(shape.num_prefixes)
            return [
                await texts.make(shape.prefix_len, random.Random(f"{seed}:prefix:{each}"))
                for each in numbers
            ]
        case Workload.RANDOM | Workload.MULTI_TURN | Workload.TOOLS:
            return ()
        case _:
            assert_never(shape.workload)


async def _turn(shape: Shape, texts: PromptTexts, rng: random.Random, prefix: str) -> Turn:
    input_len = draw_length(shape.input_lens, rng)
    max_tokens = draw_length(shape.output_lens, rng)
    text = await texts.make(input_len, rng)
    if prefix:
        text = f"{prefix} {text}"
        input_len += shape.prefix_len
    return user_turn(text, max_tokens=max_tokens, input_len=input_len)
