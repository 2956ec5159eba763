"""Refuses a checkpoint with tensors that the model does not use: it belongs to another model."""

import logging
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import chain

import numpy as np

from ouzel.backends.openvino.weights.source import Tensor, Tensors
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)

# Tensors that older versions of transformers computed from config.json and saved all the same.
_COMPUTED = re.compile(r"\.(rotary_emb\.inv_freq|masked_bias|attn\.bias|attention\.bias)$")
_FURTHER = re.compile(r"(model\.)?mtp[._]")
_LAYER = re.compile(r"\.layers\.(\d+)\.")
_KEYS_AND_VALUES = re.compile(r"\.self_attn\.[kv]_(proj|norm)\.")
# copies of embedding and head in a layer that predicts further tokens
_COPY = re.compile(r"\.(embed_tokens|shared_head\.head)\.weight$")
EMBEDDING = "model.embed_tokens.weight"
STATE_EMBEDDING = "model.embeddings.weight"  # models of recurrent layers have it
HEAD = "lm_head.weight"
# A model that was saved without its head has these in place of `model.`.
HEADLESS_PREFIXES = ("", "decoder.")


def refuse_leftovers(
    config: HfConfig,
    names: Iterable[str],
    used: AbstractSet[str],
    *,
    has_other_modes: bool,
    predicts: bool = False,
    left_out_prefixes: tuple[str, ...] = (),
) -> None:
    """Raises ModelLoadError if the checkpoint has a tensor that the language model should use and
    does not.

    These tensors may stay unused:

    - layers that predict further tokens, unless the model `predicts`; then their copies of
      embedding and head (`refuse_other_copies`)
    - the head of a model whose head is the embedding
    - projections of keys and values in layers that share the keys and values of other layers
    - the other modes of a checkpoint of several modes
    - tensors with one of `left_out_prefixes`, unused parts of a mode that is served
    """
    own = {_find_part(name) for name in used}
    left_out = set()
    for name in sorted(set(names) - used):
        part = _find_part(name)
        if name.startswith(left_out_prefixes):
            left_out.add(f"parts of {part}")
        elif (has_other_modes and part not in own) or (
            _predicts_further(config, name) and not predicts
        ):
            left_out.add(part)
        elif _predicts_further(config, name) and _COPY.search(name):
            left_out.add("copies of embedding and head")
        elif _shares_keys_and_values(config, name):
            left_out.add("keys and values of layers that share them")
        elif not _COMPUTED.search(name) and not (name == HEAD and part not in own):
            raise ModelLoadError(
                f"tensor {name} is in the checkpoint, "
                f"but a {config.model_type} with this config.json has no such tensor"
            )
    if left_out:
        logger.info("unused parts of the checkpoint: %s", ", ".join(sorted(left_out)))


def refuse_another_head(tensors: Tensors, used: AbstractSet[str], embedding: Tensor) -> None:
    """Raises ModelLoadError if config.json ties embedding and head but the checkpoint has another
    head.

    Transformers does not tie them in this case; config.json should say so. They are read only if
    the checkpoint has both.
    """
    if HEAD in used or HEAD not in tensors.names():
        return
    if not are_same((tensors, embedding), (tensors, Tensor(HEAD, embedding.shape))):
        raise ModelLoadError(
            f"config.json ties embedding and head, but the checkpoint has a tensor {HEAD} that is "
            f"not the same as {embedding.name}; set tie_word_embeddings to false to use both"
        )


def refuse_other_copies(
    config: HfConfig, tensors: Tensors, used: AbstractSet[str], shape: tuple[int, int]
) -> None:
    """Raises ModelLoadError if the prediction layer has an embedding or a head of its own.

    Checkpoints with such tensors have copies of the model's embedding and head, and the model uses
    the originals.
    """
    originals = {"embed_tokens": EMBEDDING, "shared_head.head": HEAD if HEAD in used else EMBEDDING}
    for name in sorted(tensors.names()):
        copy = _COPY.search(name) if _predicts_further(config, name) else None
        if copy is None:
            continue
        original = Tensor(originals[copy[1]], shape)
        if not are_same((tensors, original), (tensors, Tensor(name, shape))):
            raise ModelLoadError(
                f"mtp: tensor {name} must be the same as {original.name}, which the model "
                "uses in its place"
            )


def are_same(one: tuple[Tensors, Tensor], other: tuple[Tensors, Tensor]) -> bool:
    """Tells whether two tensors of one shape, each of its checkpoint, have the same values."""
    rows, other_rows = (
        chain.from_iterable(tensors.rows(tensor)) for tensors, tensor in (one, other)
    )
    return all(map(np.array_equal, rows, other_rows))


def _find_part(name: str) -> str:
    """Returns the part of a model that a tensor belongs to.

    It is `model.layers` for `model.layers.0.mlp.up_proj.weight`, and `lm_head` for
    `lm_head.weight`.
    """
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first == "model" else first


def _predicts_further(config: HfConfig, name: str) -> bool:
    """Tells whether a tensor belongs to a layer that predicts further tokens.

    The name of the layer tells it (`mtp.layers`, `model.mtp_block`), or its number, after the
    other layers.
    """
    layer = _LAYER.search(name)
    return _FURTHER.match(name) is not None or (
        layer is not None
        and int(layer[1]) >= config.size("num_hidden_layers")
        and config.integer("num_nextn_predict_layers", 0) > 0
    )


def _shares_keys_and_values(config: HfConfig, name: str) -> bool:
    layer = _LAYER.search(name)
    first = config.size("num_hidden_layers") - config.integer("num_kv_shared_layers", 0)
    return (
        layer is not None and int(layer[1]) >= first and _KEYS_AND_VALUES.search(name) is not None
    )
