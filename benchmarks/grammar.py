"""What a JSON schema costs a step, at batch 32 on the random Qwen3-0.6B shape; GenAI's (XGrammar) in the same run.

usage: uv run --group bench python -m benchmarks.grammar [--rounds N] [--genai]

The tokenizer is trained on the standard library's sources, so that masks are made over some 120,000 real tokens. Each
round runs four things in turn: plain and constrained, ours and GenAI's. A step is one forward pass; tokens that the
schema forces are appended without one, so constrained output gets more tokens out of a step. On the last line, JSON.
--genai needs transformers as well, which turns tokenizer.json into GenAI's form: add `--with transformers`.
"""

import argparse
import json
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.make_checkpoint import SHAPES, write_checkpoint
from benchmarks.stateful_ir import write_stateful_ir
from ouzel.backends.openvino.library import ov
from ouzel.grammar.formats import compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary, special_token_ids
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.types.engine_request import EngineRequest, Grammar

BATCH = 32
NUM_STEPS = 32
PROMPT_LEN = 32
KV_CACHE_GIB = 1
END = "<|im_end|>"
SCHEMA = {
    "type": "array",
    "minItems": 200,
    "items": {"$ref": "#/$defs/person"},
    "$defs": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "mail": {"type": "string", "pattern": "^[a-z]{3,12}@[a-z]{3,12}\\.org$"},
                "age": {"type": "integer", "minimum": 0, "maximum": 120},
                "tags": {
                    "type": "array",
                    "items": {"enum": ["red", "green", "blue"]},
                    "maxItems": 4,
                },
                "friend": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
            },
            "required": ["name", "mail", "age", "tags", "friend"],
            "additionalProperties": False,
        }
    },
}

Run = Callable[[bool, int], tuple[float, int]]  # (constrained, seed) -> seconds per step, tokens


def standard_library() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text(encoding="utf-8", errors="replace")


def train_tokenizer(vocab_size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 2, min_frequency=0, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(standard_library(), trainer)
    tokenizer.add_special_tokens(
        [AddedToken("<|endoftext|>", special=True), AddedToken(END, special=True)]
    )
    return tokenizer


def write_models(directory: Path, *, with_genai: bool) -> tuple[Path, Path]:
    """Our checkpoint and GenAI's IR, with one tokenizer."""
    checkpoint, ir = directory / "checkpoint", directory / "ir"
    shape = SHAPES["qwen3-0.6b"]
    write_checkpoint(checkpoint, shape, seed=0)
    tokenizer = train_tokenizer(shape.vocab_size)
    tokenizer.save(str(checkpoint / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    (checkpoint / "generation_config.json").write_text(json.dumps({"eos_token_id": end}))
    if with_genai:
        from openvino_tokenizers import convert_tokenizer
        from transformers import PreTrainedTokenizerFast

        write_stateful_ir(checkpoint, ir)
        theirs = PreTrainedTokenizerFast(
            tokenizer_file=str(checkpoint / "tokenizer.json"), eos_token=END
        )
        encoder, decoder = convert_tokenizer(theirs, with_detokenizer=True)
        ov.save_model(encoder, ir / "openvino_tokenizer.xml")
        ov.save_model(decoder, ir / "openvino_detokenizer.xml")
    return checkpoint, ir


def prompts(seed: int) -> list[list[int]]:
    rows: list[list[int]] = (
        np.random.default_rng(seed).integers(300, 30_000, (BATCH, PROMPT_LEN)).tolist()
    )
    return rows


def load_ours(checkpoint: Path, cache_dir: Path) -> Run:
    engine = openvino_engine(
        {
            "model": {"model": str(checkpoint), "cache_dir": str(cache_dir)},
            "engine": {"kv_cache_gib": KV_CACHE_GIB, "grammar_timeout_s": 60.0},
        }
    )
    content = json.loads((checkpoint / "tokenizer.json").read_text())
    marks = special_token_ids(content)
    vocabulary = GrammarVocabulary(
        marks, len(content["model"]["vocab"]) + len(marks), (marks[END],)
    )
    format = {"type": "json_schema", "json_schema": SCHEMA}
    grammar = Grammar(compile_format(format, vocabulary, strict=False, styles={}), "")

    def run(constrained: bool, seed: int) -> tuple[float, int]:
        for i, token_ids in enumerate(prompts(seed)):
            params = SamplingParams(
                max_tokens=10 * NUM_STEPS,
                temperature=1.0,
                top_k=40,
                seed=seed + i,
                is_seed_random=True,
            )
            request = EngineRequest(
                request_id=f"{seed}-{i}",
                prompt_token_ids=token_ids,
                params=params,
                eos_token_ids=(marks[END],) if constrained else (),
                grammar=grammar if constrained else None,
            )
            engine.add(request)
        num_tokens = 0
        while num_tokens < BATCH:  # compiling and prefill
            num_tokens += sum(len(output.token_ids) for output in engine.step())
        before, num_tokens = time.perf_counter(), 0
        for _ in range(NUM_STEPS):
            outputs = engine.step()
            assert len(outputs) == BATCH
            num_tokens += sum(len(output.token_ids) for output in outputs)
        seconds = time.perf_counter() - before
        for i in range(BATCH):
            engine.abort(f"{seed}-{i}")
        while engine.has_unfinished():
            engine.step()
        return seconds / NUM_STEPS, num_tokens

    return run


def load_genai(ir: Path) -> Run:
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = KV_CACHE_GIB
    scheduler.max_num_batched_tokens = 2048  # all prompts in one step, as ours
    scheduler.enable_prefix_caching = False
    pipeline = genai.ContinuousBatchingPipeline(str(ir), scheduler, "CPU")

    def run(constrained: bool, seed: int) -> tuple[float, int]:
        config = genai.GenerationConfig()
        config.max_new_tokens = 10 * NUM_STEPS
        config.do_sample, config.top_k, config.rng_seed, config.apply_chat_template = (
            True,
            40,
            seed,
            False,
        )
        if constrained:
            config.structured_output_config = genai.StructuredOutputConfig(
                json_schema=json.dumps(SCHEMA)
            )
        else:
            config.eos_token_id, config.stop_token_ids, config.ignore_eos = 0, {0}, True
        handles = [
            pipeline.add_request(
                1000 * seed + i, ov.Tensor(np.array([row], dtype=np.int64)), config
            )
            for i, row in enumerate(prompts(seed))
        ]
        pipeline.step()
        before = time.perf_counter()
        for _ in range(NUM_STEPS):
            pipeline.step()
        seconds = time.perf_counter() - before
        num_tokens = sum(len(o.generated_ids) for handle in handles for o in handle.read().values())
        for handle in handles:
            handle.stop()
        while pipeline.has_non_finished_requests():
            pipeline.step()
        return seconds / NUM_STEPS, num_tokens

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--genai", action="store_true", help="measure GenAI as well")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ouzel-bench-") as directory:
        checkpoint, ir = write_models(Path(directory), with_genai=arguments.genai)
        runs = {"ours": load_ours(checkpoint, Path(directory) / "cache")}
        if arguments.genai:
            runs["genai"] = load_genai(ir)
        seconds: dict[tuple[str, bool], list[float]] = {
            (name, c): [] for name in runs for c in (False, True)
        }
        for round_number in range(arguments.rounds + 1):  # the first is for warming up
            for (name, constrained), measured in seconds.items():
                step_s, num_tokens = runs[name](constrained, round_number)
                if round_number:
                    measured.append(step_s)
                kind = "schema" if constrained else "plain"
                print(
                    f"{name:6} {kind:7} {1000 * step_s:6.1f} ms a step, {num_tokens} tokens",
                    flush=True,
                )
    result = {
        name: {
            "plain_ms": round(1000 * median(seconds[name, False]), 2),
            "schema_ms": round(1000 * median(seconds[name, True]), 2),
            "cost": round(median(seconds[name, True]) / median(seconds[name, False]), 3),
        }
        for name in runs
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
