"""What transformers calls what a GGUF file calls otherwise: models, keys of the configuration, tensors.

Names: the package gguf of llama.cpp, constants.py (MODEL_TENSORS, Keys) and tensor_mapping.py; what the numbers mean,
and what is done to tensors when a file is written: llama.cpp, convert_hf_to_gguf.py and conversion/. An architecture
is an entry of one of the tables that are joined here.
"""

from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.dense import DENSE
from ouzel.gguf.architectures.gemma import GEMMA
from ouzel.gguf.architectures.hybrid import HYBRIDS
from ouzel.gguf.architectures.kind import Architecture
from ouzel.gguf.architectures.sparse import SPARSE

ARCHITECTURES = DENSE | GEMMA | SPARSE | HYBRIDS


def architecture_of(name: str, source: str) -> Architecture:
    known = ARCHITECTURES.get(name)
    if known is None:
        raise ModelLoadError(
            f"{source}: general.architecture {name} is not supported; supported: {', '.join(sorted(ARCHITECTURES))}"
        )
    return known
