"""Measures what the drafting head gains: answers of the demo model with and without it, in turns.

usage: uv run python -m training.demo_head.speed [--users 1 8] [--lengths 1 2 3 5] [--samples 4] [--rounds 7]

Held-out conversations of all kinds are answered greedily, so many at a time as there are users. A row of `--lengths`
always drafts so many tokens; `planned` drafts as many as pay by the measured costs, as a server does. Look-ups in the
text are off. The ratio is between the times of the same answers, without the head and with it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import msgspec
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tokenizers import Tokenizer

from training.demo_model.conversations import MODEL_DIRECTORY, Renderer
from training.demo_model.judging import ROWS, skill_conversations

HEAD = Path("tests/backends/demo_head")
MAX_TOKENS = 160
# With these costs further rows and drafts cost nothing, so the plan takes as many as it may.
FREE = StepCosts((1, 100), (1.0, 1.01))
FOR_NOTHING = StepCosts((1, 100), (0.001, 0.00101))

_ids = count()


@dataclass
class Run:
    seconds: float
    num_tokens: int
    num_proposed: int
    num_accepted: int
    answers: list[list[int]]


def read_prompts(samples: int) -> tuple[list[list[int]], tuple[int, ...]]:
    """The prompts of held-out conversations, and the tokens that end an answer."""
    tokenizer, renderer = (
        Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json")),
        Renderer(MODEL_DIRECTORY),
    )
    items = [item for row in ROWS for item in skill_conversations(*row, samples, held_out=True)]
    prompts = [
        tokenizer.encode(renderer.prompt(item), add_special_tokens=False).ids for item in items
    ]
    return prompts, tuple(tokenizer.token_to_id(each) for each in ("<|im_end|>", "<|endoftext|>"))


def make_requests(
    prompts: list[list[int]], ends: tuple[int, ...], length: int | None
) -> Iterator[EngineRequest]:
    for prompt in prompts:
        yield EngineRequest(
            request_id=str(next(_ids)),
            prompt_token_ids=prompt,
            params=SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0),
            eos_token_ids=ends,
            speculation=SpeculationParams(max_proposed_tokens=length),
        )


def run(engine: EngineCore, requests: Iterator[EngineRequest], users: int) -> Run:
    """Answers all requests, `users` at a time."""
    found: dict[str, list[int]] = {}
    counts = [0, 0]
    begin, num_open, has_more = time.perf_counter(), 0, True
    while has_more or num_open:
        while has_more and num_open < users:
            request = next(requests, None)
            if request is None:
                has_more = False
                break
            found[request.request_id] = []
            engine.add(request)
            num_open += 1
        for output in engine.step():
            assert output.error is None, output.error
            found[output.request_id] += output.token_ids
            if output.finish_reason is not None:
                num_open -= 1
                counts[0] += output.num_proposed_tokens
                counts[1] += output.num_accepted_tokens
    seconds, answers = time.perf_counter() - begin, list(found.values())
    return Run(seconds, sum(map(len, answers)), *counts, answers)


def make_engine(runner: ModelRunner, speculation: Speculation | None) -> EngineCore:
    engine = EngineCore(runner, prefix_caching=False, speculation=speculation)
    while engine.use_idle_time():
        pass
    return engine


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--head", type=Path, default=HEAD)
    parser.add_argument("--users", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 2, 3, 5])
    parser.add_argument("--samples", type=int, default=4, help="conversations of each kind")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    prompts, ends = read_prompts(options.samples)
    fields = {"model": str(MODEL_DIRECTORY), "draft_model": str(options.head)}
    with tempfile.TemporaryDirectory(prefix="ouzel-head-") as cache_dir:
        runner = create_runner(
            msgspec.convert(fields | {"cache_dir": cache_dir}, ModelConfig),
            EngineConfig(kv_cache_gib=0.25, max_num_seqs=32),
        )
        always = Speculation(
            prompt_lookup=False, predicts=True, costs=FREE, draft_costs=FOR_NOTHING
        )
        engines = {length: make_engine(runner, always) for length in options.lengths} | {
            None: make_engine(runner, Speculation(prompt_lookup=False, predicts=True))
        }
        plain = make_engine(runner, None)
        print(f"{len(prompts)} conversations, {options.rounds} rounds")
        print(
            "| users | drafted | time without / with | proposed a token | accepted | equal answers |"
        )
        print("|---:|---|---:|---:|---:|---:|")
        for users in options.users:
            for length, engine in engines.items():
                pairs = [
                    (
                        run(plain, make_requests(prompts, ends, None), users),
                        run(engine, make_requests(prompts, ends, length), users),
                    )
                    for _ in range(options.rounds + 1)
                ][1:]  # the first one learns
                ratio = median(without.seconds / ours.seconds for without, ours in pairs)
                without, last = pairs[-1]
                equal = sum(map(list.__eq__, without.answers, last.answers))
                print(
                    f"| {users} | {'planned' if length is None else length} | {ratio:.2f} "
                    f"| {last.num_proposed / last.num_tokens:.2f} "
                    f"| {last.num_accepted / max(last.num_proposed, 1):.1%} "
                    f"| {equal} of {len(prompts)} |",
                    flush=True,
                )
        runner.close()


if __name__ == "__main__":
    main()
