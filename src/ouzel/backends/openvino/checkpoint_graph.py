"""Builds the graph of a checkpoint from its weights, and checks that no tensor is left over."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product
from pathlib import Path

from ouzel.backends.openvino.graph.adapter_shape import NO_ADAPTERS, AdapterLimits
from ouzel.backends.openvino.graph.builder import Builder, DraftHead
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.hearing import hearing_family
from ouzel.backends.openvino.language_model import LanguageModel, VectorHead
from ouzel.backends.openvino.models import Build as FamilyBuild
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.speech import Build as BuildAudioEncoder
from ouzel.backends.openvino.speech import speech_family
from ouzel.backends.openvino.vision import VisionFamily, vision_family
from ouzel.backends.openvino.weights.leftovers import (
    EMBEDDING,
    HEAD,
    HEADLESS_PREFIXES,
    STATE_EMBEDDING,
    refuse_another_head,
    refuse_leftovers,
    refuse_other_copies,
)
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.renamed import RenamedWeights
from ouzel.backends.openvino.weights.source import Tensor, Tensors, Weights
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan, WidthOption
from ouzel.errors import ModelLoadError


def build_model(
    config: HfConfig,
    build: FamilyBuild,
    vision: VisionFamily | None,
    weights: Weights,
    plan: WeightPlan,
    *,
    predicts: bool = False,
    lends_parts: bool = False,
    draft_head: DraftHead | None = None,
    adapters: AdapterLimits = NO_ADAPTERS,
    vector_head: VectorHead | None = None,
) -> LanguageModel:
    """Builds the language model and its encoders of images and sounds.

    Raises ModelLoadError if OpenVINO refuses a number in config.json that the family accepts.
    """
    images = None if vision is None else vision.image_shape(config)
    build_hearing = hearing_family(config)
    # features of sounds enter as features of images do
    shape = ImageShape() if images is None and build_hearing is not None else images
    for name, prefix in product((EMBEDDING, STATE_EMBEDDING), HEADLESS_PREFIXES):
        if not weights.has(name) and weights.has(name.replace("model.", prefix)):
            weights = RenamedWeights(weights, "model.", prefix)
    try:
        builder = Builder(
            weights,
            plan,
            shape,
            predicts=predicts,
            lends_parts=lends_parts,
            draft_head=draft_head,
            adapters=adapters,
            vector_head=vector_head,
        )
        text = text_model(config, weights)
        if (build_encoder := speech_family(config)) is not None:
            return _add_audio_encoder(build(text, builder), build_encoder, config, weights, plan)
        if images is not None and images.attends_to_whole_prompts:
            # This key says so in PaliGemma's `text_config`. The families of Gemma refuse it: in a
            # checkpoint of text alone it lets every token attend to later ones, and not only the
            # tokens of the prompt.
            text = text.with_values(use_bidirectional_attention=None)
        model = build(text, builder)
        if vision is not None and images is not None:
            model = replace(
                model,
                vision=vision.build(config, VisionBuilder(weights, _choose_encoder_width(plan))),
                attends_to_whole_images=images.attends_to_whole_images,
                attends_to_whole_prompts=images.attends_to_whole_prompts,
            )
        if build_hearing is not None:
            hearing = build_hearing(config, VisionBuilder(weights, _choose_encoder_width(plan)))
            model = replace(model, hearing=hearing)
        return model
    except RuntimeError as error:
        raise ModelLoadError(
            f"OpenVINO could not build a {config.model_type} graph from this config.json: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _add_audio_encoder(
    model: LanguageModel,
    build: BuildAudioEncoder,
    config: HfConfig,
    weights: Weights,
    plan: WeightPlan,
) -> LanguageModel:
    assert model.speech is not None, "families with an audio encoder make a speech model"
    encoder = build(config, VisionBuilder(weights, _choose_encoder_width(plan)))
    return replace(model, speech=replace(model.speech, encoder=encoder))


def _choose_encoder_width(plan: WeightPlan) -> WidthOption:
    return "f32" if plan.layers == "f32" else "bf16"


def text_model(config: HfConfig, weights: Weights) -> HfConfig:
    """Returns the configuration of the language model, with `tie_word_embeddings` set by
    the tensors.

    In a checkpoint of several modes `text_config` and the level above it may disagree about
    `tie_word_embeddings`: either value may be the default of its class.
    """
    text = config.text_model()
    if text is config:
        return config
    if weights.has(HEAD):
        return text.with_values(tie_word_embeddings=False)
    parts = (config, config.section("text_config") or config)
    is_tied = any(part.flag("tie_word_embeddings", False) for part in parts)
    return text.with_values(tie_word_embeddings=True) if is_tied else text


def check_use(
    config: HfConfig,
    model: LanguageModel,
    tensors: Tensors,
    used: AbstractSet[str],
    *,
    makes_vectors: bool = False,
) -> None:
    """Raises ModelLoadError if the checkpoint has tensors that the model should use and does not.

    A model that makes vectors needs no head.
    """
    text = config.text_model()
    left_out: tuple[str, ...] = ()
    for encoder in (model.vision, model.hearing):
        left_out += () if encoder is None else encoder.left_out
    if model.speech is not None and model.speech.encoder is not None:
        left_out = model.speech.encoder.left_out
    refuse_leftovers(
        text,
        tensors.names(),
        used,
        has_other_modes=text is not config,
        predicts=model.predicts,
        left_out_prefixes=left_out,
    )
    shape = model.vocab_size, model.hidden_size
    if not makes_vectors:
        refuse_another_head(tensors, used, model.embedding or Tensor(EMBEDDING, shape))
    if model.predicts:
        refuse_other_copies(text, tensors, used, shape)


def measure_checkpoint(
    directory: Path,
    config: HfConfig,
    plan: WeightPlan,
    build: FamilyBuild | None = None,
    *,
    predicts: bool = False,
    lends_parts: bool = False,
    draft_head: DraftHead | None = None,
    vector_head: VectorHead | None = None,
    packs: bool = False,
) -> tuple[LanguageModel, MeasuredWeights]:
    """Builds the graph as `load_checkpoint` does, without reading the weights.

    `build` is the family's unless it is given. Only a head that may be a copy of the embedding is
    read, to compare the two. Raises ModelLoadError like `load_checkpoint`.
    """
    text = config.text_model()
    tensors, _ = find_weights(directory, text).open()
    weights = MeasuredWeights(tensors, recompress=plan.recompress, packs=packs)
    build, vision = build or family(text.model_type), vision_family(config)
    model = build_model(
        *(config, build, vision, weights, plan),
        predicts=predicts,
        lends_parts=lends_parts,
        draft_head=draft_head,
        vector_head=vector_head,
    )
    check_use(config, model, tensors, weights.used, makes_vectors=vector_head is not None)
    return model, weights
