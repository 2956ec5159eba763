"""Makes engines for the servers of tests; all but the random ones repeat the user's message.

`|fail|` in a message makes the fake engine fail this request after its first token, and `|die|`
kills the engine. Without a chat (completions) the engine repeats the prompt for ever.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.fake import FakeEngine, FakeOptions, echo
from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tests.api.byte_tokens import END, START, byte_library_tokenizer
from tests.grammar.tokenizers import saved_for_grammars

received_prompts: list[Sequence[int]] = []  # token ids
received_hints: list[SpeculationParams] = []


def repeat_user_message(request: EngineRequest, position: int) -> int:
    prompt = request.prompt_token_ids
    if START not in prompt or END not in prompt:
        return echo(request, position)
    end = len(prompt) - 1 - prompt[::-1].index(END)
    start = end - prompt[:end][::-1].index(START) + len("user\n")
    said = prompt[start:end]
    return said[position] if position < len(said) else END


def create_parrot(options: dict[str, object]) -> FakeEngine:
    return FakeEngine(msgspec.convert(options, FakeOptions), repeat_user_message)


def create_recording_parrot(options: dict[str, object]) -> FakeEngine:
    """Makes an engine that appends each prompt to `received_prompts`; it needs `in_thread=True`."""

    def say(request: EngineRequest, position: int) -> int:
        if position == 0:
            received_prompts.append(request.prompt_token_ids)
        return repeat_user_message(request, position)

    return FakeEngine(msgspec.convert(options, FakeOptions), say)


class HintRecordingParrot(FakeEngine):
    """An engine with all sources of proposals, which appends requests to `received_hints`.

    It needs `in_thread=True`.
    """

    @property
    def info(self) -> EngineInfo:
        return msgspec.structs.replace(super().info, has_prompt_lookup=True, has_drafts=True)

    def add(self, request: EngineRequest) -> None:
        received_hints.append(request.speculation)
        super().add(request)


def create_hint_recording_parrot(options: dict[str, object]) -> HintRecordingParrot:
    return HintRecordingParrot(msgspec.convert(options, FakeOptions), repeat_user_message)


def create_random_engine(options: dict[str, object]) -> EngineCore:
    """Makes a real engine on pseudo-random logits, for tests that need several possible answers."""
    return EngineCore(
        FakeRunner(vocab_size=260, num_blocks=1024, max_model_len=256, max_num_batched_tokens=256)
    )


def create_speculating_random_engine(options: dict[str, object]) -> EngineCore:
    """Makes a real engine on pseudo-random logits that makes proposals, as if they cost nothing."""
    runner = FakeRunner(
        vocab_size=260, num_blocks=1024, max_model_len=256, max_num_batched_tokens=256
    )
    return EngineCore(runner, speculation=Speculation(costs=StepCosts((1, 100), (1.0, 1.01))))


def create_grammar_parrot(options: dict[str, object]) -> EngineCore:
    """Makes a real engine with grammars, whose logits prefer to repeat the user's message."""
    tokenizer = saved_for_grammars(byte_library_tokenizer(), 260, END)
    return EngineCore(ParrotRunner(), grammars=GrammarCompiler(tokenizer, timeout_s=60))


def create_speculating_parrot(options: dict[str, object]) -> EngineCore:
    """Makes a real engine that repeats the user's message and makes proposals at no cost."""
    return EngineCore(
        ParrotRunner(), speculation=Speculation(costs=StepCosts((1, 100), (1.0, 1.01)))
    )


class ParrotRunner(FakeRunner):
    """A runner whose logits prefer the next byte of the user's message.

    The next byte follows the longest beginning of the message with which the answer ends.
    """

    def __init__(self) -> None:
        super().__init__(
            vocab_size=260, num_blocks=1024, max_model_len=1024, max_num_batched_tokens=256
        )

    def _logits(self, context: NDArray[np.int64]) -> NDArray[np.float32]:
        text = context.tolist()
        end = len(text) - 1 - text[::-1].index(END)
        start = end - text[:end][::-1].index(START) + len("user\n")
        said, answer = text[start:end], text[end:]
        num_said = next(
            n for n in range(len(said), -1, -1) if answer[len(answer) - n :] == said[:n]
        )
        logits = super()._logits(context)
        logits[said[num_said] if num_said < len(said) else END] = 99
        return logits


def create_grammar_timeout_engine(options: dict[str, object]) -> EngineCore:
    """Makes an engine whose grammar compiler times out, like a compiler with too many grammars."""
    tokenizer = saved_for_grammars(byte_library_tokenizer(), 260, END)
    grammars = GrammarCompiler(tokenizer, timeout_s=0.01)
    grammars.close()
    return EngineCore(
        FakeRunner(vocab_size=260, num_blocks=1024, max_model_len=256), grammars=grammars
    )
