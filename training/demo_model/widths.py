"""What each width of the weights costs in quality: the exported model as Ouzel runs it, on held-out conversations.

Run from the root:  uv run python -m training.demo_model.widths [--widths f32 int8 int4] [--samples 100] [--json FILE]

Perplexity is of the answers' tokens, as they are learned in training. KL is the mean divergence, in nats, of the next
token's distribution from that of the first width. Skills are judged as evaluate.py does it; the first table's last
column is their mean. `changed` are the answers that differ from those of the first width. The shipped model is stored
in int8, of which the other widths are made; what these do to the trained weights, a copy in bfloat16 says (`--model`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest
from tokenizers import Tokenizer

from training.demo_model.conversations import MODEL_DIRECTORY, Renderer, conversation, encode
from training.demo_model.exchanges import Conversation
from training.demo_model.judging import ROOM, ROWS, is_right, skill_conversations
from training.demo_model.sampling import Sampler

SEED = 4242
NUM_QUEUED = 64  # answers in the making at a time


@dataclass
class Quality:
    """The figures of one width."""

    width: str
    precision: str
    weight_bytes: int
    perplexity: float
    kl: float
    agreement: float  # share of positions with the same most likely token as the first width
    skills: dict[str, float] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)


class Examiner:
    """The held-out conversations, the same for every width."""

    def __init__(self, directory: Path, count: int) -> None:
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.renderer = Renderer(directory)
        self.ends = tuple(
            self.tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>")
        )
        sampler = Sampler(SEED, held_out=True)
        self.texts = [
            encode(self.tokenizer, self.renderer.full(conversation(sampler))) for _ in range(count)
        ]
        self.reference: list[
            np.ndarray
        ] = []  # log probabilities of the first width, [learned tokens, vocabulary]

    def perplexity(self, runner: ModelRunner) -> tuple[float, float, float]:
        """Perplexity, mean KL and agreement with the first width, which is the first that this is called with."""
        is_first = not self.reference
        losses, divergences, agreements = [], [], []
        for number, (token_ids, learned) in enumerate(self.texts):
            targets = np.flatnonzero(learned[1:]) + 1
            scores = log_softmax(logits(runner, token_ids, targets - 1))
            if is_first:
                self.reference.append(scores)
            reference = self.reference[number]
            losses.append(-scores[np.arange(len(targets)), np.array(token_ids)[targets]])
            divergences.append((np.exp(reference) * (reference - scores)).sum(axis=1))
            agreements.append(scores.argmax(axis=1) == reference.argmax(axis=1))
        loss, kl, agreement = (
            float(np.concatenate(each).mean()) for each in (losses, divergences, agreements)
        )
        return float(np.exp(loss)), kl, agreement

    def answers(self, engine: EngineCore, items: list[Conversation]) -> list[str]:
        """The greedy answers, without their thoughts."""
        pending = iter(enumerate(items))
        found: dict[int, list[int]] = {}
        num_open = 0
        while num_open or len(found) < len(items):
            while num_open < NUM_QUEUED and (entry := next(pending, None)) is not None:
                found[entry[0]] = []
                engine.add(self.request(*entry))
                num_open += 1
            for output in engine.step():
                assert output.error is None, output.error
                found[int(output.request_id)] += output.token_ids
                num_open -= output.finish_reason is not None
        texts = ([i for i in found[number] if i not in self.ends] for number in range(len(items)))
        decoded = (self.tokenizer.decode(ids, skip_special_tokens=False) for ids in texts)
        return [text.split("</think>")[-1].strip() for text in decoded]

    def request(self, number: int, item: Conversation) -> EngineRequest:
        """The prompt of a conversation's last answer, with as much room as evaluate.py gives it."""
        prompt, whole = self.renderer.prompt(item), self.renderer.full(item)
        expected = len(self.tokenizer.encode(whole[len(prompt) :], add_special_tokens=False).ids)
        return EngineRequest(
            request_id=str(number),
            prompt_token_ids=self.tokenizer.encode(prompt, add_special_tokens=False).ids,
            params=SamplingParams(max_tokens=2 * expected + ROOM, temperature=0.0),
            eos_token_ids=self.ends,
        )


def logits(runner: ModelRunner, token_ids: list[int], rows: np.ndarray) -> np.ndarray:
    """Those of some rows of one sequence, which is computed in one go."""
    length = len(token_ids)
    num_blocks = -(-length // runner.info.block_size)
    batch = ForwardBatch(
        token_ids=np.array(token_ids, np.int64),
        positions=np.arange(length, dtype=np.int64),
        past_lens=np.array([0], np.int32),
        subsequence_begins=np.array([0, length], np.int32),
        block_indices=np.arange(num_blocks, dtype=np.int32),
        block_indices_begins=np.array([0, num_blocks], np.int32),
        max_context_len=length,
        sampled_rows=rows.astype(np.int64),
    )
    return runner.run(batch).copy()


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def measured(width: str, examiner: Examiner, options: argparse.Namespace) -> Quality:
    """All figures of one width; its compressed weights are made afresh."""
    with tempfile.TemporaryDirectory(prefix="ouzel-widths-") as cache_dir:
        fields = {"model": str(options.model), "weights": width, "cache_dir": cache_dir}
        engine_fields = {"precision": options.precision, "kv_cache_gib": 0.25, "max_num_seqs": 32}
        runner = create_runner(
            msgspec.convert(fields, ModelConfig), msgspec.convert(engine_fields, EngineConfig)
        )
        num_bytes = sum(path.stat().st_size for path in Path(cache_dir).glob("*/weights.bin"))
        quality = Quality(width, runner.info.precision, num_bytes, *examiner.perplexity(runner))
        engine = EngineCore(runner)
        for (skill, thinking), items in skills(options.samples):
            answers = examiner.answers(engine, items)
            right = [is_right(item, answer) for item, answer in zip(items, answers, strict=True)]
            quality.skills[skill + " (thinking)" * thinking] = float(np.mean(right))
            quality.answers += answers
        runner.close()
    return quality


def judged(quality: Quality, first: Quality) -> str:
    """Mean accuracy and the share of answers that differ from the first width's."""
    if not quality.answers:
        return "- | -"
    changed = np.mean([a != b for a, b in zip(quality.answers, first.answers, strict=True)])
    return f"{np.mean(list(quality.skills.values())):.1%} | {changed:.1%}"


def skills(samples: int) -> Iterator[tuple[tuple[str, bool], list[Conversation]]]:
    """Every row of the evaluation with its conversations."""
    for row in ROWS if samples else []:
        yield row, list(skill_conversations(*row, samples, held_out=True))


def main() -> None:
    """Measure the widths one after the other, and print two tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=MODEL_DIRECTORY)
    parser.add_argument(
        "--widths", nargs="+", default=["f32", "bf16", "int8", "int4"], help="values of --weights"
    )
    parser.add_argument("--precision", default="auto", help="of inference")
    parser.add_argument("--conversations", type=int, default=400, help="for the perplexity")
    parser.add_argument(
        "--samples", type=int, default=100, help="conversations of each skill; 0 leaves them out"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    examiner = Examiner(options.model, options.conversations)
    print(
        f"{len(examiner.texts)} conversations, {sum(sum(learned) for _, learned in examiner.texts)} learned tokens\n"
    )
    print("| weights | inference | MB | perplexity | KL | same top token | skills | changed |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    found: list[Quality] = []
    for width in options.widths:
        each = measured(width, examiner, options)
        found.append(each)
        size = f"{each.weight_bytes / 1e6:.2f} | {each.perplexity:.4f} | {each.kl:.2e} | {each.agreement:.2%}"
        print(f"| {width} | {each.precision} | {size} | {judged(each, found[0])} |", flush=True)
    if options.samples:
        print(
            "\n| skill | "
            + " | ".join(options.widths)
            + " |\n|---|"
            + "---:|" * len(options.widths)
        )
        for skill in found[0].skills:
            print(
                f"| {skill} | " + " | ".join(f"{each.skills[skill]:.0%}" for each in found) + " |"
            )
    if options.json:
        options.json.write_text(
            json.dumps([asdict(each) for each in found], indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
