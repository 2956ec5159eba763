"""What lies in a KV cache means the same to another process only if all that it was computed with
is the same.
"""

import hashlib
import json
from collections.abc import Iterable

from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.tables import Table
from ouzel.config import EngineConfig

FORMAT = 1  # raise it when a graph comes to other numbers without being another


def cache_identity(
    core: ov.Core,
    compiled: ov.CompiledModel,
    tables: Iterable[Table],
    model: LanguageModel,
    engine: EngineConfig,
) -> str:
    """Returns a name that a file can have. `model` is that of the context that is served.

    In it are the files of the weights and how they are encoded, the versions of openvino and ouzel
    (`model.identity`), the rotation, the scales of the keys, the precision of inference and the
    processor with its instructions, the shapes and types of the tables, and `--deterministic`,
    without which blocks of prompts may have rows of generated tokens. How many rows the tables have
    is not, and the number of threads is not: sums may round differently by it, as they do by the
    size of a batch.
    """
    facts = [
        FORMAT,
        model.identity,
        {
            name: (rope.inverse_frequencies.tolist(), rope.scale, rope.axes)
            for name, rope in model.ropes.items()
        },
        engine.precision,
        str(compiled.get_property("INFERENCE_PRECISION_HINT")),
        core.get_property(engine.device, "FULL_DEVICE_NAME"),
        sorted(core.get_property(engine.device, "OPTIMIZATION_CAPABILITIES")),
        sorted((table.name, str(table.dtype), table.row_shape) for table in tables),
        *(["deterministic"] if engine.deterministic else []),
    ]
    if model.key_scales:  # where there are none, an identity of an earlier version stays valid
        facts.append({name: scales.tolist() for name, scales in model.key_scales.items()})
    return (
        f"{model.identity}-{hashlib.blake2b(json.dumps(facts).encode(), digest_size=8).hexdigest()}"
    )
