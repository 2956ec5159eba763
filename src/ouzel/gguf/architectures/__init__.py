"""Translates GGUF's names of models, configuration keys and tensors to transformers' names.

Names are from llama.cpp's package gguf, constants.py (MODEL_TENSORS, Keys) and tensor_mapping.py.
The meaning of numbers, and the changes to tensors, are from llama.cpp, convert_hf_to_gguf.py and
conversion/. An architecture is an entry of one of the tables joined here.
"""

from ouzel.checkpoint.model_groups import describe_unsupported
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.classic import CLASSIC
from ouzel.gguf.architectures.dense import DENSE
from ouzel.gguf.architectures.encoders import ENCODERS
from ouzel.gguf.architectures.experts import EXPERTS
from ouzel.gguf.architectures.gemma import GEMMA
from ouzel.gguf.architectures.hybrid import HYBRIDS
from ouzel.gguf.architectures.kind import Architecture
from ouzel.gguf.architectures.linear_biases import LINEAR_BIASES
from ouzel.gguf.architectures.mamba import MAMBAS
from ouzel.gguf.architectures.muse import MUSE
from ouzel.gguf.architectures.sparse import SPARSE

ARCHITECTURES = (
    CLASSIC | LINEAR_BIASES | DENSE | GEMMA | SPARSE | EXPERTS | HYBRIDS | MAMBAS | MUSE | ENCODERS
)


def find_architecture(name: str, source: str) -> Architecture:
    """Returns an architecture by its GGUF name. Raises ModelLoadError; `source` is the file."""
    known = ARCHITECTURES.get(name)
    if known is None:
        label = f"{source}: general.architecture"
        raise ModelLoadError(describe_unsupported(name, label, ARCHITECTURES))
    return known
