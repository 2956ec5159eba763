"""Names the contents of a KV cache, so that another process knows whether it can use them.

Cached blocks are the same for two processes only if everything that they were computed with is the
same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.kernels.usage import name_kernels
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.tables import Table
from ouzel.config import EngineConfig

FORMAT = 1  # increase it if a graph computes other numbers under the same identity


def cache_identity(
    core: ov.Core,
    compiled: ov.CompiledModel,
    tables: Iterable[Table],
    model: LanguageModel,
    engine: EngineConfig,
) -> str:
    """Returns a name for the cache contents, which can be a file name.

    `model` has the angles for the context that is served. The name depends on: the weight files and
    their encoding, the versions of openvino and ouzel (all in `model.identity`, for an EAGLE-3 head
    in its own identity), the rotary angles, the scales of the keys, the precision, the processor
    and its instructions, the shapes and types of the tables. It also depends on `--deterministic`,
    without which blocks of prompts may have rows that were computed as generated tokens. It does
    not depend on the number of rows of the tables or of threads: sums may round differently by the
    number of threads, and also by the size of a batch.
    """
    facts = [
        FORMAT,
        model.identity,
        list_angles(model.ropes),
        engine.precision,
        str(compiled.get_property("INFERENCE_PRECISION_HINT")),
        core.get_property(engine.device, "FULL_DEVICE_NAME"),
        sorted(core.get_property(engine.device, "OPTIMIZATION_CAPABILITIES")),
        sorted((table.name, str(table.dtype), table.row_shape) for table in tables),
        *(["deterministic"] if engine.deterministic else []),
    ]
    # no entry without own kernels, either
    if kernels := name_kernels(model.graphs):
        facts.append(["kernels", kernels])
    if model.prediction is not None and model.prediction.identity:
        facts.append(
            ["EAGLE-3 head", model.prediction.identity, list_angles(model.prediction.ropes)]
        )
    # no entry without scales, so that identities of earlier versions stay valid
    if model.key_scales:
        facts.append({name: scales.tolist() for name, scales in model.key_scales.items()})
    return (
        f"{model.identity}-{hashlib.blake2b(json.dumps(facts).encode(), digest_size=8).hexdigest()}"
    )


def list_angles(ropes: Mapping[str, Rope]) -> dict[str, object]:
    """Returns the facts of rotary angles, as JSON can have them."""
    return {
        name: (rope.inverse_frequencies.tolist(), rope.scale, rope.axes)
        for name, rope in ropes.items()
    }
