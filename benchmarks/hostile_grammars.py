"""What hostile formats cost: each is compiled, then followed for some random tokens, in a limited process of its own.

usage: PYTHONPATH=. uv run python -m benchmarks.hostile_grammars [--tokenizer FILE] [--tokens N] [NAME ...]

Without a tokenizer there are 512 tokens, which understates masks. A line for each: CPU seconds to compile and of the
slowest mask, MiB after compiling and after the walk, and how it ended.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any  # formats are whatever JSON may be

import numpy as np
from llguidance import LLMatcher, LLParserLimits
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from ouzel.engine.grammars.matcher import LIMITS
from ouzel.engine.grammars.native_memory import allocated_bytes
from ouzel.engine.grammars.tokenizer import build_tokenizer
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary, special_token_ids
from ouzel.limited_process import JobEnded, LimitedProcess, Limits
from tests.grammar.tokenizers import trained_tokenizer

MOST = Limits(wall_s=60, cpu_s=10, memory_bytes=2**30, stack_bytes=2**28)


def schema(**schema: object) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": schema}


def regex(pattern: str) -> dict[str, object]:
    return {"type": "regex", "pattern": pattern}


def grammar(text: str) -> dict[str, object]:
    return {"type": "grammar", "grammar": text}


def properties(number: int, **each: object) -> dict[str, object]:
    return {f"p{n}": each for n in range(number)}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from numbers()
    yield from patterns()
    yield from shapes()
    yield from grammars()


def numbers() -> Iterator[tuple[str, dict[str, Any]]]:
    for divisor in (
        7,
        100,
        997,
        1000,
        9973,
        99_991,
        1_000_000,
        99_400_891,
        0.01,
        0.001,
        0.0007,
        1e-7,
        12345.678,
        1e15,
    ):
        yield f"multipleOf {divisor}", schema(type="number", multipleOf=divisor)
    for divisor in (7, 1000, 9973, 99_991, 99_400_891):
        yield f"integer multipleOf {divisor}", schema(type="integer", multipleOf=divisor)
        yield (
            f"bounded multipleOf {divisor}",
            schema(type="integer", multipleOf=divisor, minimum=3, maximum=10**17),
        )
    yield (
        "allOf multipleOf",
        schema(allOf=[{"type": "integer", "multipleOf": n} for n in (97, 89, 83, 79)]),
    )
    yield (
        "20 multipleOf 997",
        schema(
            type="object",
            properties=properties(20, type="integer", multipleOf=997),
            required=[f"p{n}" for n in range(20)],
        ),
    )
    yield "wide bounds", schema(type="number", minimum=-123456789012345, maximum=987654321098765)
    yield (
        "1000 bounds",
        schema(
            type="array",
            prefixItems=[
                {"type": "number", "minimum": n, "maximum": 10**15 + n} for n in range(1000)
            ],
        ),
    )
    for number in (1000, 20_000, 10**6, 10**9):
        yield f"maxLength {number}", schema(type="string", maxLength=number)
        yield (
            f"minLength {number} pattern",
            schema(type="string", minLength=number, pattern="^[a-z]+(x|yz)*$"),
        )
        yield f"minItems {number}", schema(type="array", minItems=number, items={"type": "integer"})
        yield (
            f"maxItems {number} of objects",
            schema(type="array", maxItems=number, items={"type": "object"}),
        )
    yield (
        "nested maxItems",
        schema(
            type="array",
            maxItems=1000,
            items={"type": "array", "maxItems": 1000, "items": {"type": "array", "maxItems": 1000}},
        ),
    )
    yield "minProperties", schema(type="object", minProperties=1, maxProperties=1)
    yield (
        "maxProperties",
        schema(type="object", maxProperties=10**6, additionalProperties={"type": "integer"}),
    )


def patterns() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in (100, 1000, 5000, 10_000):
        yield f"(a|aa)*{{{number}}}", regex(f"((a|aa)*){{{number}}}b")
        yield f"(a|b)*a(a|b){{{number}}}", regex(f"(a|b)*a(a|b){{{number}}}")
        yield f".*a.{{{number}}}", regex(f".*a.{{{number}}}")
        yield f"\\w{{{number}}}", regex(f"\\w{{0,{number}}}")
        yield f"\\p{{L}}{{{number}}}", regex(rf"(\p{{L}}|\p{{N}}){{1,{number}}}")
    yield "nested repeats", regex("(((a{0,100}b){0,100}c){0,100}d){0,100}")
    yield "nested repeats of classes", regex(r"((([^a]{0,100}b){0,100}[^c]){0,100}d){0,100}")
    yield "(x{1,1000}y?){1,1000}", regex("(x{1,1000}y?){1,1000}")
    yield "many .*", regex(".*".join("abcdefghijklmnopqrst"))
    yield (
        "alternatives of .*",
        regex("|".join(f".*{a}.*{b}.*" for a in "abcdefgh" for b in "ijklmnop")),
    )
    yield "unicode classes", regex("".join(r"[\p{L}\p{N}--a]?\P{Lu}*" for _ in range(20)))
    yield "2000 unicode classes", regex(r"\p{L}\P{Lu}?" * 600)
    yield (
        "dfa blow-up in a schema",
        schema(type="string", pattern="^(a|b)*a(a|b){30}$", maxLength=5000),
    )
    yield (
        "allOf of patterns",
        schema(type="string", allOf=[{"pattern": f"{a}.{{5,50}}{a}"} for a in "abcdefghijkl"]),
    )
    yield (
        "16 counted patterns",
        schema(
            type="string", allOf=[{"pattern": f"^(.{{{n}}})*$"} for n in (7, 11, 13, 17, 19, 23)]
        ),
    )


def shapes() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "enum of 10000", schema(enum=[f"value {n} of many" for n in range(10_000)])
    yield "enum of 10000 numbers", schema(enum=[n * 7919 for n in range(10_000)])
    yield "enum of long texts", schema(enum=[str(n) * 1000 for n in range(200)])
    yield "const of 10000", schema(const="x" * 10_000)
    yield "const of escapes", schema(const="\n" * 5000)
    yield (
        "1000 optional properties",
        schema(type="object", properties=properties(1000, type="string")),
    )
    yield (
        "1000 required properties",
        schema(
            type="object",
            properties=properties(1000, type="string"),
            required=[f"p{n}" for n in range(1000)],
        ),
    )
    yield (
        "anyOf of overlapping objects",
        schema(
            anyOf=[
                {
                    "type": "object",
                    "properties": {f"p{m}": {"type": "string"} for m in range(n, n + 20)},
                }
                for n in range(200)
            ]
        ),
    )
    yield (
        "anyOf of patterns",
        schema(anyOf=[{"type": "string", "pattern": f"^a.*{n}.*z$"} for n in range(200)]),
    )
    yield (
        "allOf of anyOf",
        schema(
            allOf=[
                {"anyOf": [{"properties": {f"p{n}{m}": {"type": "integer"}}} for m in range(6)]}
                for n in range(6)
            ]
        ),
    )
    yield (
        "patternProperties",
        schema(
            type="object",
            patternProperties={f"^a{{{n}}}.*b$": {"type": "integer"} for n in range(1, 30)},
        ),
    )
    yield "chain of references", chained(190, lambda inner: {"type": "array", "items": inner})
    yield "doubling references", chained(60, lambda inner: {"allOf": [inner, inner]})
    yield (
        "doubling anyOf",
        chained(60, lambda inner: {"anyOf": [inner, {"type": "array", "items": inner}]}),
    )


def chained(
    number: int, link: Callable[[dict[str, object]], dict[str, object]]
) -> dict[str, object]:
    links = {f"d{n}": link({"$ref": f"#/$defs/d{n + 1}"}) for n in range(number)}
    return schema(**{"$ref": "#/$defs/d0", "$defs": {**links, f"d{number}": {"type": "integer"}}})


def grammars() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "EBNF repeats", grammar('root ::= (("a" | "aa"){0,100} "b"){0,100}')
    yield (
        "EBNF nested repeats",
        grammar('root ::= ((([a-z]+ " "){0,9999} "b"){0,9999} "c"){0,9999}'),
    )
    yield "EBNF ambiguous", grammar('root ::= root root | "a" | "aa" | root "a"')
    yield "Lark repeats", grammar("start: (A B?){1,9999}\nA: /a+/\nB: /[a-b]{1,9999}/")
    yield (
        "Lark & of counts",
        grammar("start: T\nT: " + " & ".join(f"/(.{{{n}}})*x/" for n in (7, 11, 13, 17))),
    )
    yield (
        "Lark complement",
        grammar("start: T\nT: ~/(?s:.*)a.{0,60}b(?s:.*)/ & ~/(?s:.*)c.{0,60}d(?s:.*)/"),
    )
    yield "max_chars", {"type": "any_text", "max_chars": 10**9}
    yield (
        "max_chars, excludes",
        {"type": "any_text", "max_chars": 10**5, "excludes": [f"bad{n}" for n in range(200)]},
    )
    yield "max_tokens", {"type": "any_tokens", "max_tokens": 10**9}
    yield (
        "repeat of a schema",
        {"type": "repeat", "min": 0, "max": 10_000, "content": schema(type="object")},
    )
    yield (
        "qwen_xml enums",
        {
            "type": "qwen_xml_parameter",
            "json_schema": {
                "type": "object",
                "properties": properties(200, enum=[f"v{n}" for n in range(40)]),
            },
        },
    )
    for name in ("date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"):
        yield (
            f"200 formats {name}",
            schema(type="array", prefixItems=[{"type": "string", "format": name}] * 200),
        )
        yield (
            f"{name}, long pattern",
            schema(type="string", format=name, pattern=".{0,3}a.{10,200}b", maxLength=1000),
        )


def create_probe(
    path: str, vocab_size: int, end: int, num_tokens: int, num_states: int
) -> Callable[[bytes], bytes]:
    """Is called in the limited process."""
    limits = LLParserLimits(
        max_items_in_row=LIMITS.max_items_in_row,
        step_max_items=LIMITS.step_max_items,
        max_lexer_states=num_states,
        max_grammar_size=LIMITS.max_grammar_size,
        verbose_errors=False,
    )
    tokenizer = build_tokenizer(Path(path).read_text(), vocab_size=vocab_size, eos_token_ids=(end,))

    def probe(text: bytes) -> bytes:
        began_s, began_bytes = time.process_time(), allocated_bytes()
        matcher = LLMatcher(tokenizer, text.decode(), log_level=0, limits=limits)
        row = allocate_token_bitmask(1, tokenizer.vocab_size)
        if not matcher.is_error():
            fill_next_token_bitmask(matcher, row)
        compiled = {
            "cpu_s": time.process_time() - began_s,
            "mib": (allocated_bytes() - began_bytes) / 2**20,
        }
        outcome, slowest_s, number, choices = "", 0.0, 0, random.Random(0)
        while number < num_tokens and not matcher.is_error() and not matcher.is_stopped():
            before_s = time.process_time()
            fill_next_token_bitmask(matcher, row)
            slowest_s = max(slowest_s, time.process_time() - before_s)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            allowed = allowed[allowed != end]
            if matcher.is_error() or not len(allowed):
                break
            matcher.consume_token(int(choices.choice(allowed)))
            number += 1
        outcome = matcher.get_error().splitlines()[0] if matcher.is_error() else ""
        walked = {
            "mask_s": slowest_s,
            "walked_mib": (allocated_bytes() - began_bytes) / 2**20,
            "tokens": number,
        }
        walked["total_s"] = time.process_time() - began_s
        return json.dumps({**compiled, **walked, "outcome": outcome[:90]}).encode()

    return probe


def vocabulary_of(tokenizer: Path | None, directory: Path) -> tuple[Path, GrammarVocabulary]:
    """Returns the path of the tokenizer, of one that is trained into the directory where none is given, and its
    vocabulary, with one end token.
    """
    path = tokenizer or directory / "tokenizer.json"
    if tokenizer is None:
        trained_tokenizer().save(str(path))
    content = json.loads(path.read_text())
    marks = special_token_ids(content)
    return path, GrammarVocabulary(
        marks, len(content["model"]["vocab"]) + len(marks), (marks["<|im_end|>"],)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--lexer-states", type=int, default=LIMITS.max_lexer_states)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path, vocabulary = vocabulary_of(arguments.tokenizer, Path(directory))
        size, (end,) = vocabulary.vocab_size, vocabulary.eos_token_ids
        options = {
            "path": str(path),
            "vocab_size": size,
            "end": end,
            "num_tokens": arguments.tokens,
        }
        options["num_states"] = arguments.lexer_states
        process = LimitedProcess("benchmarks.hostile_grammars:create_probe", options, MOST)
        print("| format | compile, s | slowest mask, s | MiB | after the walk | tokens | outcome |")
        print("|---" * 7 + "|")
        for name, format in cases():
            if arguments.names and not any(each in name for each in arguments.names):
                continue
            try:
                text = compile_format(format, vocabulary, strict=False, styles={})
                seen = json.loads(process.run(text.encode()))
            except (GrammarError, JobEnded) as error:
                print(
                    f"| {name} | | | | | | {type(error).__name__}: {str(error)[:110]} |", flush=True
                )
                continue
            row = "{cpu_s:.3f} | {mask_s:.4f} | {mib:.1f} | {walked_mib:.1f} | {tokens} | {outcome}".format(
                **seen
            )
            print(f"| {name} | {row} |", flush=True)
        process.close()


if __name__ == "__main__":
    main()
