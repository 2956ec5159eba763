"""Measures real texts of one user: with proposals, without proposals, and against llama.cpp.

usage: uv run --group bench python -m benchmarks.mixes CHECKPOINT [--gguf FILE]
           [--draft DIR [--share 0.7]] [--weights int4] [--rounds 3]

A checkpoint with random weights is made to say the answers below, as in `benchmarks.speculation`.
The checkpoint's own tokenizer, trained on Python's standard library, makes the tokens. The texts
are from this repository, which the tokenizer has not seen: an edited module, an answer that quotes
a document, JSON records, tool calls in an agent's loop, and prose that copies nothing. So the share
of right proposals is neither scripted nor taken from another model. A draft model (--draft) says a
given share of the answer's tokens (--share).

llama.cpp decodes as many tokens behind a prompt of the same length, without proposals, with the
best of its settings: its rate does not depend on the text. All take turns, answer by answer. The
program prints tokens per second, medians of rounds, and medians of ratios within rounds. The last
line is JSON.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from tokenizers import Tokenizer

from benchmarks.comparison.product import Contender
from benchmarks.comparison.workers import Machine, Worker
from benchmarks.comparison.workloads import Decode
from benchmarks.speculation import Scripted, make_engine, run
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.speculation.proposals import Speculation
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest

ROOT = Path(__file__).parents[1]
MAX_MODEL_LEN = 4096
LONGEST_ANSWER = 400  # tokens


@dataclass(frozen=True)
class Case:
    """A prompt and the answer to it."""

    mix: str
    prompt: str
    answer: str


def edits() -> Iterator[Case]:
    """Yields cases whose answer is the whole file, with a name changed and a line added."""
    names = {
        "engine/speculation/rules/trials.py": "trial_s",
        "engine/state/token_counts.py": "counts",
        "engine/stats.py": "stats",
    }
    for path, name in names.items():
        text = (ROOT / "src" / "ouzel" / path).read_text()
        changed = re.sub(rf"\b{name}\b", f"new_{name}", text) + "\n# reviewed\n"
        yield Case(
            "editing code", f"Rename {name} to new_{name} here:\n```python\n{text}```\n", changed
        )


def quotes() -> Iterator[Case]:
    """Yields cases whose answer quotes sentences of the document between other words."""
    document = (ROOT / "docs" / "how-to" / "limit-requests.md").read_text()[:8000]
    sentences = [
        each.strip() for each in re.split(r"(?<=[.!?])\s+", document) if 60 < len(each) < 300
    ]
    for seed in range(3):
        quoted = Random(seed).sample(sentences, 4)
        answer = "According to the text, there are several points. " + " ".join(
            f'Number {number}: it says that "{each}" This matters for your question, '
            "since it is about speed."
            for number, each in enumerate(quoted, 1)
        )
        yield Case(
            "quoting documents", f"{document}\n\nWhat does it say about serving? Quote it.", answer
        )


def records() -> Iterator[Case]:
    """Yields cases whose answer is an array of objects of one form."""
    for seed in range(3):
        random = Random(seed)
        rows = [
            {
                "id": random.randrange(1000, 10_000),
                "name": random.choice(("Ada", "Grace", "Edsger", "Barbara"))
                + f" {random.randrange(100)}",
                "department": random.choice(("research", "sales", "support")),
                "salary": random.randrange(3000, 9000),
                "is_active": random.random() < 0.8,
            }
            for _ in range(9)
        ]
        lines = "\n".join(", ".join(str(value) for value in row.values()) for row in rows)
        yield Case(
            "JSON", f"Make a JSON array of these lines:\n{lines}\n", json.dumps(rows, indent=2)
        )


def calls() -> Iterator[Case]:
    """Yields cases of an agent's tool calls; each result names the object of the next call."""
    tools = [
        {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in keys},
            },
        }
        for name, keys in {
            "read_file": ("path",),
            "search": ("query", "directory"),
            "run_tests": ("path",),
        }.items()
    ]
    for seed in range(3):
        random = Random(seed)
        paths = [
            f"src/ouzel/engine/{random.choice(('core', 'beam', 'sampler'))}_{number}.py"
            for number in range(6)
        ]
        prompt = (
            f"Tools: {json.dumps(tools)}\nThe files are:\n"
            + "\n".join(paths)
            + "\nRead each, and run its tests."
        )
        answer = "".join(
            f'<tool_call>\n{{"name": "{name}", "arguments": {{"path": "{path}"}}}}\n</tool_call>\n'
            for path in paths
            for name in ("read_file", "run_tests")
        )
        yield Case("tool calls", prompt, answer)


def prose() -> Iterator[Case]:
    """Yields cases whose answer has nothing of its prompt."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    parts = [part for part in text.split("\n\n") if len(part) > 400]
    for part in parts[:3]:
        yield Case("chat", "Tell me how people work on a project like this one.", part)


MIXES: tuple[Callable[[], Iterator[Case]], ...] = (edits, quotes, records, calls, prose)


@dataclass(frozen=True)
class Row:
    mix: str
    prompt_tokens: float
    answer_tokens: float
    tokens_per_step: float
    tokens_per_s: float
    without: float
    gain: float  # over ourselves without guesses
    llama_cpp: float | None = None
    against_llama_cpp: float | None = None


class Answers:
    """The scripted model, with and without proposals."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
        config = EngineConfig(max_num_seqs=8, kv_cache_gib=1.0)
        model = ModelConfig(
            model=str(options.model), weights=options.weights, max_model_len=MAX_MODEL_LEN
        )
        self._runner = Scripted(
            create_runner(model, config), np.zeros(MAX_MODEL_LEN + 64, np.int64)
        )
        self._plain = make_engine(self._runner, None)
        self._speculation = Speculation()
        self._draft: Scripted | None = None
        if options.draft is not None:
            of_draft = ModelConfig(model=str(options.draft), weights=options.weights)
            runner = create_runner(of_draft, config, num_blocks=self._plain.info.num_blocks)
            self._draft = Scripted(runner, np.zeros(MAX_MODEL_LEN + 64, np.int64))
            self._draft.share = options.share
            self._speculation = Speculation(draft=self._draft)
        self._guessing = make_engine(self._runner, self._speculation)
        self._ids = count()

    def rates(self, prompt: list[int], answer: list[int]) -> tuple[float, float, float]:
        """Returns tokens per second with proposals and without, and tokens per step."""
        for scripted in filter(None, (self._runner, self._draft)):
            scripted.say([*prompt, *answer])
        guessing, plain = (
            run(engine, [make_request(next(self._ids), prompt, len(answer))])
            for engine in (self._guessing, self._plain)
        )
        steps = len(answer) - guessing.num_accepted
        return guessing.tokens_per_s, plain.tokens_per_s, len(answer) / steps


def make_request(number: int, prompt: list[int], length: int) -> EngineRequest:
    """Makes a request whose prompt no earlier request has cached."""
    params = SamplingParams(max_tokens=length, temperature=0.0)
    return EngineRequest(
        request_id=f"{number}", prompt_token_ids=prompt, params=params, cache_salt=f"{number}"
    )


def measure_mix(cases: list[Case], answers: Answers, peer: Worker | None, rounds: int) -> Row:
    """Measures the cases of one mix."""
    turns: list[tuple[float, float, float, float | None]] = []
    lengths = []
    for number, case in enumerate(cases * (rounds + 1)):
        prompt, answer = (answers.tokenizer.encode(text).ids for text in (case.prompt, case.answer))
        answer = answer[:LONGEST_ANSWER]
        ours = answers.rates(prompt, answer)
        theirs = None
        if peer is not None:
            theirs = peer.run(Decode(1, len(prompt), len(answer)), number, {}).rate
        if number >= len(cases):  # the first round learns
            turns.append((*ours, theirs))
            lengths.append((len(prompt), len(answer)))
    peers = [(guessing, rate) for guessing, _, _, rate in turns if rate is not None]
    return Row(
        mix=cases[0].mix,
        prompt_tokens=median(length for length, _ in lengths),
        answer_tokens=median(length for _, length in lengths),
        tokens_per_step=median(tokens for _, _, tokens, _ in turns),
        tokens_per_s=median(guessing for guessing, *_ in turns),
        without=median(plain for _, plain, *_ in turns),
        gain=median(guessing / plain for guessing, plain, *_ in turns),
        llama_cpp=median(rate for _, rate in peers) if peers else None,
        against_llama_cpp=median(guessing / rate for guessing, rate in peers) if peers else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure what guesses gain on texts of several kinds, for one user."
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--share", type=float, default=0.7)
    parser.add_argument("--weights", default="int4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    answers = Answers(options)
    peer = None
    if options.gguf is not None:
        contender = Contender("llama.cpp", "llama.cpp", str(options.gguf))
        peer = Worker(
            contender, Machine(scratch="", num_threads=os.cpu_count() or 1, kv_cache_gib=1.0)
        )
    print(
        "| mix | prompt | answer | tokens a step | tokens/s | without | gain | llama.cpp "
        "| against it |"
    )
    print("|---|" + "---:|" * 8)
    rows = []
    for mix in MIXES:
        row = measure_mix(list(mix()), answers, peer, options.rounds)
        rows.append(row)
        against = (
            " | |"
            if row.llama_cpp is None
            else f" {row.llama_cpp:.1f} | {row.against_llama_cpp:.2f} |"
        )
        print(
            f"| {row.mix} | {row.prompt_tokens:.0f} | {row.answer_tokens:.0f} "
            f"| {row.tokens_per_step:.2f} | {row.tokens_per_s:.1f} | {row.without:.1f} "
            f"| {row.gain:.2f} |{against}",
            flush=True,
        )
    if peer is not None:
        peer.close()
    print(json.dumps({"rows": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    main()
