"""Translates GGUF's names of models, configuration keys and tensors to transformers' names.

Names are from llama.cpp's package gguf, constants.py (MODEL_TENSORS, Keys) and tensor_mapping.py.
The meaning of numbers, and the changes to tensors, are from llama.cpp, convert_hf_to_gguf.py and
conversion/. An architecture is an entry of one of the tables joined here.
"""

from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.classic import CLASSIC
from ouzel.gguf.architectures.dense import DENSE
from ouzel.gguf.architectures.gemma import GEMMA
from ouzel.gguf.architectures.hybrid import HYBRIDS
from ouzel.gguf.architectures.kind import Architecture
from ouzel.gguf.architectures.sparse import SPARSE

ARCHITECTURES = CLASSIC | DENSE | GEMMA | SPARSE | HYBRIDS


def find_architecture(name: str, source: str) -> Architecture:
    """Returns an architecture by its GGUF name. Raises ModelLoadError; `source` is the file."""
    known = ARCHITECTURES.get(name)
    if known is None:
        raise ModelLoadError(
            f"{source}: general.architecture {name} is not supported; "
            f"supported: {', '.join(sorted(ARCHITECTURES))}"
        )
    return known
