"""Measures an embedding model: cosines of its vectors with the vectors of transformers."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.quality.texts import SENTENCES
from benchmarks.quality.truth import Floats
from ouzel.pooling import Pooling
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest

# name of the configuration -> options of `ouzel serve`
CONFIGURATIONS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "--precision int8": {"precision": "int8"},
    "--precision f32": {"precision": "f32"},
    "--weights bf16": {"weights": "bf16"},
    "--weights f32 --precision f32": {"weights": "f32", "precision": "f32"},
}


def cosines(directory: Path, truth: Floats, options: Mapping[str, str], cache_dir: Path) -> Floats:
    """Returns the cosine of each sentence's vector with the truth's [sentences, dimensions]."""
    own = _unit(_vectors(directory, options, cache_dir))
    result: Floats = (own * _unit(truth)).sum(axis=1)
    return result


def _vectors(directory: Path, options: Mapping[str, str], cache_dir: Path) -> Floats:
    model = {"model": str(directory), "cache_dir": str(cache_dir)}
    if "weights" in options:
        model["weights"] = options["weights"]
    engine = openvino_engine(
        {"model": model, "engine": {k: v for k, v in options.items() if k != "weights"}}
    )
    tokenizer = load_tokenizer(directory)
    for index, text in enumerate(SENTENCES):
        token_ids, second_begin = tokenizer.encode_pair(text, None, max_tokens=None)
        pooling = Pooling(text_lens=(len(token_ids),), second_begins=(second_begin,))
        params = SamplingParams(max_tokens=0)
        engine.add(
            EngineRequest(
                request_id=str(index),
                prompt_token_ids=token_ids,
                params=params,
                n=1,
                pooling=pooling,
            )
        )
    made: dict[int, Floats] = {}
    while engine.has_unfinished():
        for output in engine.step():
            assert output.vector is not None, output.error
            made[int(output.request_id)] = np.frombuffer(output.vector, "<f4")
    return np.stack([made[index] for index in range(len(SENTENCES))])


def _unit(vectors: Floats) -> Floats:
    result: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return result
