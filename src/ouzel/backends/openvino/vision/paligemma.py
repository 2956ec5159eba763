"""PaliGemma has SigLIP's encoder and reads the whole prompt in both directions; its language model
is Gemma or Gemma 2.

Reference: transformers, models/paligemma/modeling_paligemma.py and configuration_paligemma.py;
PaliGemma (Beyer 2024, arXiv 2407.07726) and PaliGemma 2 (Steiner 2024, arXiv 2412.03555).
"""

from collections.abc import Mapping

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import integers
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import VitShape, siglip_rows, tile_passes
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models import gemma, gemma2
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

_TEXT_DEFAULTS: dict[str, Mapping[str, object]] = {
    "gemma": gemma.DEFAULTS,
    "gemma2": gemma2.DEFAULTS,
}


def image_shape(config: HfConfig) -> ImageShape:
    text = config.text_model()
    if text.model_type not in _TEXT_DEFAULTS:
        raise text.refuse("model_type", " or ".join(_TEXT_DEFAULTS))
    text.require(use_bidirectional_attention=True)
    if text.model_type == "gemma2":
        check_softcap(text)
    return ImageShape(attends_to_whole_prompts=True)


def check_softcap(text: HfConfig) -> None:
    """Refuses Gemma 2 without a soft cap of attention.

    OpenVINO would then compute its windows, and it ignores cached tokens of the prompt before a
    window. With the soft cap Ouzel's kernels compute them.
    """
    if not text.with_defaults(**gemma2.DEFAULTS).number("attn_logit_softcapping", 0.0):
        raise text.refuse("attn_logit_softcapping", "numbers above 0")


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision, text = config.required_section("vision_config"), config.text_model()
    if vision.text("model_type", "siglip_vision_model") != "siglip_vision_model":
        raise vision.refuse("model_type", "siglip_vision_model")
    shape = VitShape.read_siglip(vision)
    text_size = text.with_defaults(**_TEXT_DEFAULTS[text.model_type]).size("hidden_size")
    if (size := config.size("projection_dim", 2048)) != text_size:
        raise ModelLoadError(
            f"config.json: projection_dim must be the hidden_size of text_config, {text_size}, "
            f"found {size}"
        )
    rows = ops.reshape(siglip_rows(b, shape), integers(-1, shape.hidden_size), False)
    features = b.linear(rows, "multi_modal_projector.linear", shape.hidden_size, text_size)
    return b.vision_model(features, tile_passes(shape))
