"""A calibration text begins like a prompt of the model."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, processors

from ouzel.cli.calibration_text import read_calibration_text
from ouzel.options.invalid_option import InvalidOption


def write_tokenizer(directory: Path, *, has_start: bool) -> None:
    """Writes a tokenizer that knows two letters and drops all others."""
    tokenizer = Tokenizer(models.BPE({"<s>": 0, "t": 1, "m": 2}, []))
    if has_start:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    )


@pytest.mark.parametrize(("has_start", "start"), [(True, (0,)), (False, ())])
def test_a_tokenizer_need_not_know_the_letter_a(
    has_start: bool, start: tuple[int, ...], tmp_path: Path
) -> None:
    write_tokenizer(tmp_path, has_start=has_start)
    (tmp_path / "text.txt").write_text("tide moon m a")
    text = read_calibration_text(tmp_path, str(tmp_path / "text.txt"))
    assert (text.start, list(text.token_ids)) == (start, [1, 2, 2])


def test_a_text_of_unknown_letters_only_is_refused(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, has_start=True)
    (tmp_path / "text.txt").write_text("an ebb")
    with pytest.raises(InvalidOption, match="must hold text"):
        read_calibration_text(tmp_path, str(tmp_path / "text.txt"))
