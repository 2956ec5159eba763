"""Counts the bytes of a model with the assistant or head that drafts for it.

Each of the two is mapped from its cache entry, or stays in memory if it cannot be stored.
"""

import errno
from pathlib import Path

import pytest

from ouzel.backends.openvino import draft_head_loader, load, loader
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.cache import EntryWriter, digest
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import ModelConfig
from tests.backends.eagle_heads import HEADS, MODELS

ASSISTANTS = HEADS.parent / "golden_assistant"
PADDING = 64 * 200  # more than the bytes between the parts of files


@pytest.mark.parametrize(
    ("model", "draft"),
    [
        (MODELS / "gemma4-shared", ASSISTANTS / "gemma4-shared"),
        (MODELS / "llama", HEADS / "llama-specforge"),
    ],
    ids=["assistant", "head"],
)
def test_the_bytes_are_the_same_if_some_weights_cannot_be_stored(
    model: Path, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = load_with(model, None, tmp_path / "alone").weight_bytes
    sizes: dict[tuple[Path, ...], int] = {}
    for refused in ((), (model,), (draft,), (model, draft)):
        refuse_to_store(monkeypatch, *refused)
        loaded = load_with(model, draft, tmp_path / str(len(sizes)))
        assert len(loaded.mappings) == 2 - len(refused)
        sizes[refused] = loaded.weight_bytes
    assert max(sizes.values()) - min(sizes.values()) < PADDING, sizes
    assert min(sizes.values()) > alone + 5 * PADDING


def load_with(model: Path, draft: Path | None, cache_dir: Path) -> LanguageModel:
    options = ModelConfig(
        model=str(model),
        draft_model="" if draft is None else str(draft),
        weights="f32",
        cache_dir=str(cache_dir),
    )
    return load(ov.Core(), model, read_hf_config(model), options)


def refuse_to_store(monkeypatch: pytest.MonkeyPatch, *checkpoints: Path) -> None:
    """Lets no entries of these checkpoints be made, as on a full disk."""

    def make_writer(entry: Path) -> EntryWriter:
        if any(digest(str(each.resolve())) in entry.name for each in checkpoints):
            raise OSError(errno.ENOSPC, "No space left on device")
        return EntryWriter(entry)

    for module in (loader, draft_head_loader):
        monkeypatch.setattr(module, "EntryWriter", make_writer)
