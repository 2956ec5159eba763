"""Compares beam search on golden checkpoints with transformers (training/golden/make_beams.py)."""

import json
from pathlib import Path
from typing import Any  # JSON

import pytest

from ouzel.engine.core import EngineCore
from ouzel.sampling import BeamSearchParams
from tests.backends.conftest import Load, read_golden
from tests.engine.requests import make_request, run_alone

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "beams.json").read_text()
)


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case['checkpoint']}-{case['num_beams']}"
)
def test_beams_agree_with_transformers(case: dict[str, Any], load: Load) -> None:
    golden = read_golden(case["checkpoint"])
    request = make_request(
        golden.prompt[: case["prompt_length"]],
        n=case["num_beams"],
        max_tokens=24,
        eos_token_ids=tuple(case.get("eos_token_id", ())),
        min_tokens=case.get("min_new_tokens", 0),
        repetition_penalty=case.get("repetition_penalty", 1.0),
        no_repeat_ngram_size=case.get("no_repeat_ngram_size", 0),
        beam_search=BeamSearchParams(
            width=case["num_beams"],
            length_penalty=case.get("length_penalty", 1.0),
            early_stopping=case.get("early_stopping", False),
        ),
    )

    results = run_alone(EngineCore(load(golden.directory)), request)

    assert [result.token_ids for result in results] == case["outputs"]
    assert [result.final.score for result in results] == pytest.approx(case["scores"], rel=1e-4)
