"""Loads the IR of a model with a vision encoder: a language model, a token embedding, the encoder.

The first two graphs become one, which takes token ids and the features of images, like Ouzel's own
graphs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ouzel.backends.openvino.graph.nodes import Node, gather, integers, put_in_place
from ouzel.backends.openvino.ir import qwen_encoder, tile_encoder
from ouzel.backends.openvino.ir.graphs import (
    IrGraph,
    add_input,
    read_graph,
    refuse_unreadable,
    replace_input,
)
from ouzel.backends.openvino.ir.paging import find_vocab_size, make_paged
from ouzel.backends.openvino.ir.parts import cut
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Passes, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

LANGUAGE_FILE = "openvino_language_model.xml"
EMBEDDING_FILE = "openvino_text_embeddings_model.xml"
ADVICE = "It must be as `optimum-cli export openvino --task image-text-to-text` makes it"


@dataclass(frozen=True, slots=True)
class ImageFamily:
    files: tuple[str, ...]  # files of the vision encoder
    # takes config.json and the graphs of these files
    encoder: Callable[..., tuple[ov.Model, Passes]]


IMAGE_FAMILIES = {
    "llava": ImageFamily(tile_encoder.FILES, tile_encoder.llava_encoder),
    "qwen2_5_vl": ImageFamily(qwen_encoder.FILES, qwen_encoder.qwen2_5_vl_encoder),
    "qwen2_vl": ImageFamily(qwen_encoder.FILES, qwen_encoder.qwen2_vl_encoder),
}


def load_image_model(core: ov.Core, directory: Path, config: HfConfig) -> LanguageModel:
    family = IMAGE_FAMILIES.get(config.model_type)
    if family is None:
        raise ModelLoadError(
            f"{directory / LANGUAGE_FILE} cannot be served: an IR with a vision encoder must be "
            f"one of {', '.join(IMAGE_FAMILIES)}, found {config.model_type}; "
            "serve the safetensors checkpoint instead"
        )
    language, embedding = (read(core, directory / name) for name in (LANGUAGE_FILE, EMBEDDING_FILE))
    encoder = [read(core, directory / name) for name in family.files]
    with refuse_unreadable(directory / LANGUAGE_FILE, ADVICE):
        make_paged(language.graph, directory / LANGUAGE_FILE)
        hidden_size = find_row_size(embedding.graph)
        take_images(language.graph, embedding.graph, hidden_size)
    with refuse_unreadable(directory / family.files[-1], ADVICE):
        graph, passes = family.encoder(config, *(each.graph for each in encoder))
        if find_row_size(graph) != hidden_size:
            raise RuntimeError(
                f"features have {find_row_size(graph)} numbers, the language model's rows "
                f"{hidden_size}"
            )
        vision = VisionModel(
            parts=cut(graph), arrays=[each.weights for each in encoder], passes=passes
        )
    text = config.text_model()
    return LanguageModel(
        graph=language.graph,
        arrays=[language.weights, embedding.weights],
        ropes={},
        hidden_size=hidden_size,
        vocab_size=find_vocab_size(language.graph) or text.size("vocab_size"),
        max_positions=text.size("max_position_embeddings"),
        weights="ir",
        mappings=tuple(each.mapping for each in (language, embedding, *encoder)),
        vision=vision,
    )


def read(core: ov.Core, path: Path) -> IrGraph:
    with refuse_unreadable(path, ADVICE):
        return read_graph(core, path)


def find_row_size(graph: ov.Model) -> int:
    """Returns the size of the rows of the graph's output. Raises RuntimeError if the graph leaves
    it open.
    """
    shape = graph.output(0).get_partial_shape()
    return int(shape[len(shape) - 1].get_length())


def take_images(graph: ov.Model, embedding: ov.Model, hidden_size: int) -> None:
    """Replaces `inputs_embeds` by the inputs `input_ids`, `image_rows` and `image_features`."""
    token_ids = add_input(graph, "input_ids", [-1], ov.Type.i64)
    image_rows = add_input(graph, "image_rows", [-1], ov.Type.i64)
    features = add_input(graph, "image_features", [1, -1, hidden_size], ov.Type.f32)
    embedded = ops.reshape(join_embedding(embedding, token_ids), integers(-1, hidden_size), False)
    first_level = gather(features, ops.constant(0, ov.Type.i64))
    replace_input(
        graph,
        "inputs_embeds",
        ops.scatter_update(embedded, image_rows, first_level, ops.constant(0, ov.Type.i64)),
    )
    graph.validate_nodes_and_infer_types()


def join_embedding(embedding: ov.Model, token_ids: Node) -> Node:
    """Joins the embedding's graph to the token ids; returns the embeddings [1, T, hidden_size]."""
    put_in_place(embedding.input(0), ops.unsqueeze(token_ids, integers(0)))
    return embedding.get_results()[0].input_value(0)
