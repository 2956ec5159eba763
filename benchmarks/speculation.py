"""Measures the gain and the cost of proposals, on a model of real size with scripted answers.

usage: uv run python -m benchmarks.speculation MODEL [--draft DIR | --mtp] [--weights int4]
           [--batches 1 8 32] [--rounds 5]

A checkpoint with random weights says nothing that can be predicted. So the rows of its logits are
overwritten with a scripted text after the model has computed them: the time is the model's, the
text is known. With `copying A` the client predicts that text, and a share A of the prediction is
right. With `draft A` the draft model or the EAGLE-3 head (--draft) or the model's prediction layer
(--mtp) says the text, and a share A of its tokens is right. `nothing` is a text without repetitions
and without a prediction.

One engine with proposals and one without take turns on the same model. The program prints the
tokens per second of each while all streams of a batch run (right proposals let some streams end
early), and the ratio round by round; the last line is JSON. `curve` is the gain of the best fixed
length of drafts, by the measured times of steps of both models (Leviathan et al., arXiv 2211.17192,
section 3).
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, HiddenRunner, ModelRunner, PredictingRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.cache.state_slots import state_slots
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.drafting import DEFAULT_NUM_DRAFTED
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.sampling import SamplingParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, SpeculationParams

PROMPT_LEN, OUTPUT_LEN, MAX_MODEL_LEN = 256, 96, 2048
SHARES = (0.0, 0.3, 0.6, 0.9, 1.0)
VOCABULARY = range(1000, 50_000)

_ids = count()


class Scripted:
    """A runner whose logits say the script; with `share`, a random part of the script is wrong."""

    def __init__(self, runner: ModelRunner, script: NDArray[np.int64], distance: int = 1) -> None:
        """`distance` is from a row's position to the position of the token that it says."""
        self._runner = runner
        self._script = script
        self._distance = distance
        own = runner.prediction if isinstance(runner, PredictingRunner) else None
        self.prediction = None if own is None else Scripted(own, script, distance + 1)
        self._random = np.random.default_rng(0)
        self.share = 1.0

    def say(self, token_ids: list[int]) -> None:
        """Sets the script: token ids by position."""
        self._script[: len(token_ids)] = token_ids

    @property
    def info(self) -> EngineInfo:
        return self._runner.info

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = self._runner.run(batch)
        following = self._script[batch.positions[batch.sampled_rows] + self._distance]
        is_wrong = self._random.random(len(following)) >= self.share
        logits[np.arange(len(logits)), following + is_wrong] = 1e6
        return logits

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        assert isinstance(self._runner, HiddenRunner)
        return self._runner.hidden_rows

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        self._runner.close()


@dataclass(frozen=True)
class Row:
    guesses: str
    batch: int
    tokens_per_s: float
    without: float
    ratio: float
    lowest: float
    highest: float
    accepted: float  # share of the proposed tokens
    proposed: float  # proposed tokens for each token of output
    curve: float | None = None


@dataclass(frozen=True)
class Run:
    # While all streams run: from the first token of the last one to the last token of the first.
    tokens_per_s: float
    num_proposed: int
    num_accepted: int


def run(engine: EngineCore, requests: list[EngineRequest]) -> Run:
    for request in requests:
        engine.add(request)
    numbers = dict.fromkeys((request.request_id for request in requests), 0)
    begin, num_before, num_proposed, num_accepted, speed, has_ended = 0.0, 0, 0, 0, 0.0, False
    while engine.has_unfinished():
        for output in engine.step():
            numbers[output.request_id] += len(output.token_ids)
            if output.finish_reason is not None:
                has_ended = True
                num_proposed += output.num_proposed_tokens
                num_accepted += output.num_accepted_tokens
        if not begin and all(numbers.values()):
            begin, num_before = time.perf_counter(), sum(numbers.values())
        elif not speed and has_ended:
            speed = (sum(numbers.values()) - num_before) / (time.perf_counter() - begin)
    return Run(speed, num_proposed, num_accepted)


def make_requests(batch: int, predicted: list[int], seed: int) -> list[EngineRequest]:
    random = Random(seed)
    return [
        EngineRequest(
            request_id=f"{next(_ids)}",
            prompt_token_ids=random.sample(VOCABULARY, PROMPT_LEN),
            params=SamplingParams(max_tokens=OUTPUT_LEN, temperature=0.0),
            speculation=SpeculationParams(predicted_token_ids=predicted),
            cache_salt=f"{next(_ids)}",  # nobody finds another's answer
        )
        for _ in range(batch)
    ]


def measure_answers(
    name: str, batch: int, engines: tuple[EngineCore, EngineCore], predicted: list[int], rounds: int
) -> Row:
    """Measures engines with and without proposals."""
    pairs = []
    for seed in range(rounds + 1):
        requests = [make_requests(batch, predicted, seed) for _ in engines]
        pairs.append([run(engine, each) for engine, each in zip(engines, requests, strict=True)])
    pairs = pairs[1:]  # the first one learns
    ratios = [ours.tokens_per_s / plain.tokens_per_s for ours, plain in pairs]
    num_proposed = sum(ours.num_proposed for ours, _ in pairs)
    return Row(
        guesses=name,
        batch=batch,
        tokens_per_s=median(ours.tokens_per_s for ours, _ in pairs),
        without=median(plain.tokens_per_s for _, plain in pairs),
        ratio=median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        accepted=sum(ours.num_accepted for ours, _ in pairs) / max(num_proposed, 1),
        proposed=num_proposed / (rounds * batch * OUTPUT_LEN),
    )


def measure_step_costs(runner: ModelRunner) -> StepCosts:
    info = runner.info
    states = state_slots(info, None)
    blocks = BlockManager(
        num_blocks=info.num_blocks, block_size=info.block_size, prefix_caching=False, states=states
    )
    costs = MeasuredCosts(runner, blocks)
    while costs.advance():
        pass
    assert costs.known is not None, "the KV cache holds too few blocks"
    return costs.known


def curve(share: float, batch: int, large: StepCosts, draft: StepCosts) -> float:
    """Returns the gain of drafts of the best length over no drafts.

    No drafts count as a length, so the gain is at least 1.
    """
    context = PROMPT_LEN + OUTPUT_LEN // 2

    def seconds_of_token(length: int) -> float:
        num_rows = length + 1
        num_several = batch if length else 0
        step_s = large.estimate_step(batch * num_rows, num_several, num_several * num_rows)
        step_s += batch * context * large.attention.estimate(num_rows)
        draft_s = length * draft.estimate(batch, batch * context * draft.attention.estimate(1))
        return (step_s + draft_s) / sum(share**depth for depth in range(num_rows))

    return seconds_of_token(0) / min(map(seconds_of_token, range(DEFAULT_NUM_DRAFTED + 1)))


def make_engine(runner: ModelRunner, speculation: Speculation | None) -> EngineCore:
    engine = EngineCore(runner, prefix_caching=False, speculation=speculation)
    while engine.use_idle_time():
        pass
    return engine


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what guesses gain and cost.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--mtp", action="store_true")
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only-draft", action="store_true")
    options = parser.parse_args()
    script = np.array(Random(0).sample(VOCABULARY, MAX_MODEL_LEN + 64), np.int64)
    text = script[PROMPT_LEN : PROMPT_LEN + OUTPUT_LEN].tolist()
    config = EngineConfig(max_num_seqs=32, kv_cache_gib=1.0, precision=options.precision)
    model = ModelConfig(
        model=str(options.model),
        weights=options.weights,
        max_model_len=MAX_MODEL_LEN,
        mtp=options.mtp,
        draft_model=str(options.draft or ""),
    )
    runner = Scripted(create_runner(model, config), script)
    plain = make_engine(runner, None)
    rows = []

    def show(row: Row) -> None:
        rows.append(row)
        print(
            f"| {row.guesses} | {row.batch} | {row.tokens_per_s:.1f} | {row.without:.1f} "
            f"| {row.ratio:.2f} "
            f"| {row.lowest:.2f} - {row.highest:.2f} | {row.accepted:.2f} | {row.proposed:.2f} "
            f"| {'' if row.curve is None else f'{row.curve:.2f}'} |",
            flush=True,
        )

    print(
        "| guesses | batch | tokens/s | without | ratio | of rounds | accepted | proposed "
        "| curve |\n|---|" + "---:|" * 8
    )
    random = Random(1)
    for batch in () if options.only_draft else options.batches:
        show(
            measure_answers(
                "nothing", batch, (make_engine(runner, Speculation()), plain), [], options.rounds
            )
        )
        for share in SHARES:
            predicted = [each if random.random() < share else each + 1 for each in text]
            engines = make_engine(runner, Speculation()), plain
            show(measure_answers(f"copying {share}", batch, engines, predicted, options.rounds))
    draft = runner.prediction
    if options.draft is not None and draft is None:
        config_of_draft = ModelConfig(model=str(options.draft), weights=options.weights)
        draft = Scripted(
            create_runner(config_of_draft, config, num_blocks=plain.info.num_blocks), script
        )
    if draft is not None:
        costs = measure_step_costs(runner), measure_step_costs(draft)
        for batch in options.batches:
            for draft.share in SHARES:
                own = None if draft is runner.prediction else draft
                speculation = Speculation(prompt_lookup=False, draft=own, predicts=own is None)
                engines = make_engine(runner, speculation), plain
                row = measure_answers(f"draft {draft.share}", batch, engines, [], options.rounds)
                show(replace(row, curve=curve(draft.share, batch, *costs)))
    print(json.dumps({"rows": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    main()
