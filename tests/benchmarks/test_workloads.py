import json

import numpy as np
import pytest

from benchmarks.comparison.checkpoints import counting_chunks
from benchmarks.comparison.workers import read_workload, workload_json
from benchmarks.comparison.workloads import (
    CopiedText,
    Decode,
    Prefill,
    Requests,
    Row,
    full_rows,
    prompts,
    quick_rows,
)

ROWS = [*full_rows(), *quick_rows()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_workload_reaches_the_product_unchanged(row: Row) -> None:
    assert read_workload(json.loads(json.dumps(workload_json(row.workload)))) == row.workload


@pytest.mark.parametrize("rows", [full_rows(), quick_rows()], ids=["full", "quick"])
def test_rows_have_names_of_their_own(rows: list[Row]) -> None:
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_prompts_have_the_requested_length_and_number(row: Row) -> None:
    lengths = {len(token_ids) for token_ids in prompts(row.workload, 1)}
    match row.workload:
        case Decode(batch=batch, context_len=length):
            expected = (batch, {length})
        case Prefill(num_tokens=length):
            expected = (1, {length})
        case Requests(batch=batch, prompt_len=length):
            expected = (batch, {length})
    assert (len(prompts(row.workload, 1)), lengths) == expected


def test_no_prompt_begins_like_a_prompt_of_another_workload_or_round() -> None:
    """Otherwise a prefix cache would find tokens of an earlier prompt."""
    beginnings = [
        tuple(token_ids[:8])
        for workload in {row.workload for row in ROWS if not isinstance(row.workload, Requests)}
        for seed in range(3)
        for token_ids in prompts(workload, seed)
    ]
    assert len(set(beginnings)) == len(beginnings)


def test_requests_share_their_beginning_only() -> None:
    rows = np.array(prompts(Requests(4, 100, 1, shared_len=60), 0))
    assert (rows[:, :60] == rows[0, :60]).all()
    assert len(set(rows[:, 60].tolist())) == 4


@pytest.mark.parametrize("edit_every", [0, 12])
def test_the_continuation_of_a_copied_text_stands_in_the_text(edit_every: int) -> None:
    [token_ids] = prompts(Decode(1, 100, 1, text=CopiedText(edit_every)), 0)
    answer = np.arange(token_ids[-1] + 1, token_ids[-1] + 99)
    is_copied = np.array(token_ids[1:-1]) == answer
    assert is_copied.sum() == (98 if not edit_every else 98 - 98 // edit_every)


@pytest.mark.parametrize("wrong_share", [0.0, 0.3])
def test_after_a_token_the_model_predicts_the_next_number(wrong_share: float) -> None:
    vocab_size, hidden_size = 600, 1024
    chunks, rng = counting_chunks(hidden_size, wrong_share), np.random.default_rng(0)
    matrices = {}
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        content = b"".join(chunks(name, (vocab_size, hidden_size), rng))
        widened = np.frombuffer(content, np.uint16).astype(np.uint32) << np.uint32(16)
        matrices[name] = widened.view(np.float32).reshape(vocab_size, hidden_size)
    answers = (matrices["model.embed_tokens.weight"] @ matrices["lm_head.weight"].T).argmax(axis=1)
    token_ids = np.arange(vocab_size)
    steps = (answers - token_ids) % vocab_size
    assert (steps == 1).mean() == pytest.approx(1 - wrong_share, abs=0.08)
    assert set(steps.tolist()) == ({1, 5} if wrong_share else {1})
