"""Optimum exports OpenVINO IR directories: graphs as `openvino_*.xml` and `.bin`, and
`config.json`.

The language model is `openvino_model.xml`, which takes token ids (text.py); where the checkpoint
sees, `openvino_language_model.xml`, which takes embeddings, beside one graph for these and others
for the vision encoder (seeing.py). Either holds a stateful graph with scaled-dot-product attention,
which paging.py makes one of ours. A graph without states that gives hidden rows or logits reads
texts whole (whole_texts.py).
"""

from dataclasses import replace
from pathlib import Path

from ouzel.backends.openvino.ir.seeing import LANGUAGE_FILE, load_seeing_model
from ouzel.backends.openvino.ir.text import TEXT_FILE, load_text_model
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.cache import content_key
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.observability.progress import stage


def is_ir_directory(directory: Path) -> bool:
    return any((directory / name).is_file() for name in (TEXT_FILE, LANGUAGE_FILE))


def load_ir(core: ov.Core, directory: Path, config: HfConfig) -> LanguageModel:
    """Raises ModelLoadError for everything that the user can mend."""
    is_text = (directory / TEXT_FILE).is_file()
    with stage("reading the graphs"):
        model = (
            load_text_model(core, directory, config)
            if is_text
            else load_seeing_model(core, directory, config)
        )
    files = [directory / "config.json", *sorted(directory.glob("openvino_*"))]
    return replace(model, identity=f"{directory.resolve().name[:64]}-ir-{content_key(files)}")
