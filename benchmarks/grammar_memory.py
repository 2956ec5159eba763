"""Whether an engine keeps its memory: grammars of many kinds are compiled, followed and dropped, over and over.

usage: uv run python -m benchmarks.grammar_memory [--tokenizer tokenizer.json] [--requests N]

Of 50 kinds of formats each comes back with other names; half of the requests repeat an earlier text. Some are refused.
A line for every tenth of the requests: MiB of this process, and of the compiler's child processes.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from benchmarks.hostile_grammars import vocabulary_of
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import GrammarBroken, Masks, Session
from ouzel.engine.grammars.tokenizer import GrammarTokenizer, TokenizerSource
from ouzel.grammar.formats import compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary

NUM_KINDS = 50
NUM_TOKENS = 80
WIDTHS = (1, 3, 10, 40, 100)
TYPES: tuple[dict[str, object], ...] = (
    {"type": "string"},
    {"type": "string", "maxLength": 200},
    {"type": "string", "pattern": "^[a-z]{3,12}@[a-z]{3,12}\\.org$"},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "minimum": -7, "maximum": 123456},
    {"type": "number", "multipleOf": 7},
    {"enum": [f"choice {number}" for number in range(60)]},
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 90},
    {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"inner": {"type": "boolean"}}}]},
    {"type": "string", "pattern": ".{0,40}a.{10,90}b"},
)


def text_of(kind: int, variant: int, vocabulary: GrammarVocabulary) -> str:
    """Raises GrammarError."""
    names = [f"name_{variant}_{number}" for number in range(WIDTHS[kind % 5])]
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, TYPES[kind // 5]),
        "required": names[: len(names) // 2] if variant % 2 else names,
    }
    return compile_format(
        {"type": "json_schema", "json_schema": schema}, vocabulary, strict=True, styles={}
    )


def requests(number: int, vocabulary: GrammarVocabulary) -> Iterator[str]:
    choices = random.Random(0)
    seen: list[str] = []
    for index in range(number):
        if index % 10 == 9:
            yield f'start: "{index}" nowhere'  # refused
        elif seen and choices.random() < 0.5:
            yield choices.choice(seen[-400:])
        else:
            seen.append(text_of(choices.randrange(NUM_KINDS), index, vocabulary))
            yield seen[-1]


def follow(
    session: Session, masks: Masks, row: np.ndarray, end: int, choices: random.Random
) -> None:
    """Takes random tokens. Raises GrammarBroken."""
    for _ in range(NUM_TOKENS):
        if session.is_complete:
            return
        row[:] = 0
        (error,) = masks.apply([row], [session])
        if error:
            raise GrammarBroken(error)
        allowed = np.flatnonzero(np.isfinite(row))
        session.accept(
            int(choices.choice([token for token in allowed[:2000] if token != end] or [end]))
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--requests", type=int, default=3200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path, vocabulary = vocabulary_of(arguments.tokenizer, Path(directory))
        size, (end,) = vocabulary.vocab_size, vocabulary.eos_token_ids
        compiler = GrammarCompiler(
            GrammarTokenizer(TokenizerSource(path, size, (end,))), timeout_s=60
        )
        masks, row, choices, ended = (
            Masks(compiler.vocab_size),
            np.zeros(size, np.float32),
            random.Random(1),
            [0, 0],
        )
        for index, text in enumerate(requests(arguments.requests, vocabulary)):
            compilation = compiler.compile(text)
            compilation.wait(60)
            try:
                follow(compilation.session(), masks, row, end, choices)
            except (GrammarRefused, GrammarBroken) as error:
                ended[isinstance(error, GrammarBroken)] += 1
            if (index + 1) % (arguments.requests // 10) == 0:
                process = psutil.Process()
                children = (
                    sum(each.memory_info().rss for each in process.children(recursive=True)) / 2**20
                )
                rss = process.memory_info().rss / 2**20
                print(
                    f"{index + 1}: {rss:.0f} MiB, children {children:.0f}; refused, broken {ended}",
                    flush=True,
                )
        compiler.close()


if __name__ == "__main__":
    main()
