"""Writes the files of the products once into a directory, for this run and later ones.

Work that needs much memory or a peer's package runs in a process that ends.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal  # Any: options of products are their own

from benchmarks.comparison.product import Contender
from benchmarks.make_checkpoint import SHAPES, ModelShape

Bits = Literal[8, 4]
DRAFT_WRONG_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """The shape, the bits and the options of a comparison."""

    scratch: Path
    shape: str
    bits: Bits
    num_threads: int
    with_draft: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    contenders: list[Contender]
    notes: list[str]  # missing contenders, each with the reason


def prepare_files(comparison: ComparisonOptions) -> Prepared:
    """Writes the missing files. The others are compared with the first contender."""
    directory = comparison.scratch / comparison.shape
    checkpoint = run_in_process(
        make_checkpoint, directory / "checkpoint", SHAPES[comparison.shape], 0.0
    )
    draft = None
    if comparison.with_draft:
        draft = run_in_process(
            make_checkpoint,
            directory / "draft",
            draft_shape(comparison.shape),
            DRAFT_WRONG_SHARE,
        )
    contenders = ours(checkpoint, comparison, draft)
    notes = ["vLLM: not available (it is not among the bench group's packages)"]
    for name, prepare in (("OpenVINO GenAI", genais), ("llama.cpp", llama_cpps)):
        try:
            contenders += [
                set_rival(each, contenders)
                for each in run_in_process(prepare, checkpoint, comparison, draft)
            ]
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            notes.append(f"{name}: not available ({type(error).__name__}: {error})")
    return Prepared(contenders, notes)


def set_rival(peer: Contender, ours: list[Contender]) -> Contender:
    """Sets the contender of ours that also proposes tokens as the rival, if there is one."""
    proposing = [each.name for each in ours if each.product == "ouzel" and each.only_copies]
    return replace(peer, rival=proposing[0]) if peer.only_copies and proposing else peer


def run_in_process(function: Callable[..., Any], *arguments: object) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def draft_shape(shape: str) -> ModelShape:
    """Returns a shape of about a tenth of the model, with the same vocabulary."""
    vocab_size = SHAPES[shape].vocab_size
    if shape == "qwen3-0.6b":
        return replace(SHAPES["small"], vocab_size=vocab_size)
    return SHAPES["qwen3-0.6b"]


def make_checkpoint(directory: Path, shape: ModelShape, wrong_share: float) -> Path:
    from benchmarks.comparison.checkpoints import make

    return make(directory, shape, wrong_share=wrong_share)


def ours(checkpoint: Path, comparison: ComparisonOptions, draft: Path | None) -> list[Contender]:
    """Returns our contenders: all without proposals, and the first also with proposals.

    It proposes by prompt lookup, and in a further contender by a draft model.
    """
    kinds = {
        8: {"int8": "int8"},
        4: {"int4, head int8": "int4", "int4, head int4": "int4,embedding=int4,head=int4"},
    }
    without = {"engine.prompt_lookup": False}
    found = [
        Contender(f"Ouzel {name}", "ouzel", str(checkpoint), weights, options=without)
        for name, weights in kinds[comparison.bits].items()
    ]
    first = found[0]
    found.append(replace(first, name=f"{first.name}, prompt lookup", options={}, only_copies=True))
    if draft is not None:
        options = {"engine.prompt_lookup": False, "model.draft_model": str(draft)}
        found.append(
            replace(first, name=f"{first.name}, draft model", options=options, only_copies=True)
        )
    return found


def genais(checkpoint: Path, comparison: ComparisonOptions, draft: Path | None) -> list[Contender]:
    from benchmarks.comparison.genai import write_ir

    weights = f"int{comparison.bits}"
    directory = write_ir(checkpoint, checkpoint.parent / f"ir-{weights}", weights)
    name = f"GenAI {weights}" if comparison.bits == 8 else "GenAI int4, head int8"
    plain = Contender(name, "genai", str(directory), weights)
    return [
        plain,
        replace(
            plain, name=f"{name}, prompt lookup", options={"prompt_lookup": True}, only_copies=True
        ),
    ]


def llama_cpps(
    checkpoint: Path, comparison: ComparisonOptions, draft: Path | None
) -> list[Contender]:
    from benchmarks.comparison.gguf_files import quantise, write_bf16

    def file(source: Path, kind: str, head: str | None = None) -> str:
        path = source.parent / f"{source.name}-{kind}{'' if head is None else f'-head-{head}'}.gguf"
        if path.exists():
            return str(path)
        whole = write_bf16(source, source.parent / f"{source.name}-bf16.gguf")
        return str(quantise(whole, path, kind, head=head, num_threads=comparison.num_threads))

    options = {} if draft is None else {"draft_model": file(draft, "Q8_0")}
    if comparison.bits == 8:
        found = [
            Contender("llama.cpp Q8_0", "llama.cpp", file(checkpoint, "Q8_0"), "Q8_0", options)
        ]
    else:
        found = [
            Contender(
                "llama.cpp Q4_0, head Q6_K", "llama.cpp", file(checkpoint, "Q4_0"), "Q4_0", options
            ),
            Contender(
                "llama.cpp Q4_0, head Q4_0",
                "llama.cpp",
                file(checkpoint, "Q4_0", "Q4_0"),
                "Q4_0",
                options,
                rival="Ouzel int4, head int4",
            ),
        ]
    proposals = {"prompt lookup": "lookup"} | ({} if draft is None else {"draft model": "draft"})
    for name, kind in proposals.items():
        first = found[0]
        run_options = {"proposals": kind}
        found.append(
            replace(first, name=f"{first.name}, {name}", run_options=run_options, only_copies=True)
        )
    return found
