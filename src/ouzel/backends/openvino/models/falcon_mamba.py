"""Falcon Mamba is Mamba with norms, without weights, of the steps and of the maps of its states.

Reference: transformers, models/falcon_mamba/modeling_falcon_mamba.py and
configuration_falcon_mamba.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import mamba
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return mamba.build_mamba(config, b, Norm(config.number("mixer_rms_eps", 1e-6)))
