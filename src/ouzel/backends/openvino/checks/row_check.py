"""Checks that `--deterministic` can be honoured: the logits of a row are the same bits in every
step.

The runtime chooses the kernels of matrix products by the processor, the types and the number of
rows; for experts by the number of rows that each gets. So the check computes the rows of a prompt
and of generated tokens alone, in chunks, beside few other rows, and in a full step.
"""

import logging
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.state_tables import find_state_tables
from ouzel.engine.base import ModelRunner
from ouzel.engine.flat_batch import Span, build_flat_batch
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

Rows = NDArray[np.float32]
Company = tuple[int, ...]  # lengths of the subsequences beside the compared rows
MakeCompany = Callable[[EngineInfo, int], Company]  # takes the number of compared rows

_NUM_GENERATED = 4
_LEAST_PROMPT = 8  # tokens
_NUM_BLOCKS = 3  # blocks of the compared rows: kernels may change after the end of a block


def refuse_kinds(model_type: str, language_model: LanguageModel, num_adapters: int) -> None:
    """Raises ModelLoadError for a kind of model whose rows depend on other rows by design."""
    if find_state_tables(language_model.graph, ov.Type.f32):
        raise ModelLoadError(
            "deterministic: the states of recurrent layers depend on how a prompt is cut into "
            f"chunks; a {model_type} cannot be served with it"
        )
    if language_model.attends_to_whole_images:
        raise ModelLoadError(
            f"deterministic: a {model_type} computes the tokens of an image together, and cannot "
            "be served with it; serve its language model alone"
        )
    if language_model.attends_to_whole_prompts:
        raise ModelLoadError(
            f"deterministic: a {model_type} computes the tokens of a prompt together, and cannot "
            "be served with it"
        )
    if num_adapters:
        raise ModelLoadError(
            f"deterministic: cannot be combined with lora and max_loras, given {num_adapters} "
            "adapters"
        )


class UnequalRows(ModelLoadError):
    """The bits of a row depend, on this processor, on the other rows of a step."""


def check_rows(runner: ModelRunner) -> None:
    """Raises UnequalRows if the bits of a row depend on the other rows of a step.

    Raises ModelLoadError for prompts that are too short for the check, which overwrites the first
    blocks of the cache.
    """
    info = runner.info
    num_tokens = min(_NUM_BLOCKS * info.block_size, info.max_model_len) - _NUM_GENERATED
    if num_tokens < _LEAST_PROMPT:
        raise ModelLoadError(
            f"deterministic: max_model_len must be >= {_LEAST_PROMPT + _NUM_GENERATED}, given "
            f"{info.max_model_len}"
        )
    tokens = (
        np.random.default_rng(0).integers(0, info.vocab_size, num_tokens + _NUM_GENERATED).tolist()
    )
    middle, third = num_tokens // 2 + 1, num_tokens // 3
    prompt = (0, num_tokens)
    chunks = ((0, middle, num_tokens), (0, third, middle, num_tokens))
    generated = tuple(range(num_tokens, num_tokens + _NUM_GENERATED + 1))
    for name, cuts, ways in (
        ("a prompt", prompt, (prompt, *chunks)),
        ("generated tokens", generated, (generated,)),
    ):
        alone = _in_steps(runner, tokens, cuts, _alone)
        others = [_in_steps(runner, tokens, way, company) for way in ways for company in _COMPANIES]
        if cuts is generated:
            others.append(_rows(runner, tokens, list(pairwise(cuts)), _alone))
        num_other = sum(not np.array_equal(rows, alone) for rows in others)
        logger.debug(
            "row check: %d of %d companies change the bits of %s", num_other, len(others), name
        )
        if num_other:
            raise UnequalRows(
                f"deterministic: on this processor the logits of {name} have other bits in "
                f"{num_other} of {len(others)} steps with other rows (precision {info.precision}, "
                f"weights {info.weights}). Try another --precision or --weights, or serve the "
                "model without --deterministic"
            )


def _alone(_info: EngineInfo, _num_own: int) -> Company:
    return ()


def _few(_info: EngineInfo, _num_own: int) -> Company:
    return (1,) * 3


def _few_of_both_kinds(_info: EngineInfo, _num_own: int) -> Company:
    return 5, 1


def _all_sequences(info: EngineInfo, _num_own: int) -> Company:
    return (1,) * (info.max_num_seqs - 1)


def _full(info: EngineInfo, num_own: int) -> Company:
    num_subsequences, num_left = divmod(
        max(info.max_num_batched_tokens - num_own, 0), info.block_size
    )
    return (info.block_size,) * num_subsequences + (1,) * num_left


_COMPANIES = (_alone, _few, _few_of_both_kinds, _all_sequences, _full)


def _make_company_spans(company: Company, info: EngineInfo) -> list[Span]:
    """Returns spans of random tokens, in the padding block, which no request reads.

    Random tokens go to different experts; an expert may multiply many rows by another kernel.
    """
    random = np.random.default_rng(1)
    return [
        ([info.num_blocks], 0, random.integers(0, info.vocab_size, length).tolist())
        for length in company
    ]


def _in_steps(
    runner: ModelRunner, tokens: list[int], cuts: tuple[int, ...], company: MakeCompany
) -> Rows:
    """Returns the logits of all rows between the cuts, each part in a step of its own."""
    return np.concatenate([_rows(runner, tokens, [cut], company) for cut in pairwise(cuts)])


def _rows(
    runner: ModelRunner, tokens: list[int], cuts: list[tuple[int, int]], make_company: MakeCompany
) -> Rows:
    """Computes parts of a sequence in one step, together with rows of other sequences.

    `cuts` are the begin and the end of each part in `tokens`. `make_company` gives the other
    sequences; half of them stand before the parts and half behind. Returns the logits of the parts.
    """
    info = runner.info
    own: list[Span] = [
        (list(range(-(-end // info.block_size))), begin, tokens[begin:end]) for begin, end in cuts
    ]
    num_own = _num_rows(own)
    company = _make_company_spans(make_company(info, num_own), info)
    before, behind = company[: len(company) // 2], company[len(company) // 2 :]
    sampled_rows = _num_rows(before) + np.arange(num_own, dtype=np.int64)
    batch = build_flat_batch([*before, *own, *behind], sampled_rows, info.block_size)
    return runner.run(batch).copy()


def _num_rows(spans: Iterable[Span]) -> int:
    return sum(len(token_ids) for _, _, token_ids in spans)
