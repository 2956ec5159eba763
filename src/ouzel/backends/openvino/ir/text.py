"""Loads the IR of a language model alone: `openvino_model.xml`."""

from pathlib import Path

from ouzel.backends.openvino.ir.graphs import read_graph, refuse_unreadable
from ouzel.backends.openvino.ir.paging import find_vocab_size, make_paged
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.checkpoint.hf_config import HfConfig

TEXT_FILE = "openvino_model.xml"
ADVICE = (
    "It must be a stateful model, as `optimum-cli export openvino --task "
    "text-generation-with-past` makes it"
)


def load_text_model(core: ov.Core, directory: Path, config: HfConfig) -> LanguageModel:
    path = directory / TEXT_FILE
    with refuse_unreadable(path, ADVICE):
        model = read_graph(core, path)
        make_paged(model.graph, path)
    return LanguageModel(
        graph=model.graph,
        arrays=[model.weights],
        ropes={},
        hidden_size=config.size("hidden_size"),
        vocab_size=find_vocab_size(model.graph) or config.size("vocab_size"),
        max_positions=config.size("max_position_embeddings"),
        weights="ir",
        mappings=(model.mapping,),
    )
