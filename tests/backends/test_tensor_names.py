"""Names of tensors that differ between checkpoints of one family."""

import shutil
from pathlib import Path

import pytest

from tests.backends.checkpoint_edits import WEIGHTS, add_tensor, load_copy, rename_tensors
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error


@pytest.mark.parametrize(
    ("name", "prefix", "masks"),
    [
        ("gpt2", "transformer.", ("h.0.attn.bias", "h.1.attn.masked_bias")),
        ("opt", "model.", ()),
        ("bloom", "transformer.", ()),
        ("mpt", "transformer.", ()),
        (
            "gpt-neox",
            "gpt_neox.",
            ("layers.0.attention.bias", "layers.0.attention.rotary_emb.inv_freq"),
        ),
    ],
)
def test_a_model_saved_without_its_head_is_served(
    name: str, prefix: str, masks: tuple[str, ...], tmp_path: Path
) -> None:
    """Such tensors have no prefix; older versions of transformers saved masks, too."""
    golden = read_golden(name)
    directory = shutil.copytree(golden.directory, tmp_path / name)
    rename_tensors(directory / WEIGHTS, f'"{prefix}'.encode(), b'"')
    for mask in masks:
        add_tensor(directory / WEIGHTS, mask)
    _, logits = Driver(load_copy(directory)).prefill(golden.prompt, len(golden.prompt))
    assert relative_error(logits, golden.logits) < 1e-5
