"""Loads OpenVINO IR directories exported by Optimum: graphs as `openvino_*.xml` and `.bin`, and
`config.json`.

- A language model alone is `openvino_model.xml`, which takes token ids (text.py).
- A model with a vision encoder has `openvino_language_model.xml`, which takes embeddings, a graph
  that embeds token ids, and the graphs of the encoder (image_models.py).
- A graph without states that gives hidden rows or logits is an encoder (whole_texts.py).

The graph of a language model is stateful and has scaled-dot-product attention; paging.py turns it
into a graph with the inputs of Ouzel's own graphs.
"""

from dataclasses import replace
from pathlib import Path

from ouzel.backends.openvino.ir.image_models import LANGUAGE_FILE, load_image_model
from ouzel.backends.openvino.ir.text import TEXT_FILE, load_text_model
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.cache import content_key
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.observability.progress import stage


def is_ir_directory(directory: Path) -> bool:
    return any((directory / name).is_file() for name in (TEXT_FILE, LANGUAGE_FILE))


def load_ir(core: ov.Core, directory: Path, config: HfConfig) -> LanguageModel:
    """Loads the language model of an IR directory. Raises ModelLoadError for every fault that the
    user can mend.
    """
    is_text = (directory / TEXT_FILE).is_file()
    with stage("reading the graphs"):
        load_model = load_text_model if is_text else load_image_model
        model = load_model(core, directory, config)
    files = [directory / "config.json", *sorted(directory.glob("openvino_*"))]
    return replace(model, identity=f"{directory.resolve().name[:64]}-ir-{content_key(files)}")
