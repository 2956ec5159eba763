"""How far the types of the KV cache move a model's logits: the figures of the trial that chooses one.

uv run python -m benchmarks.cache_choice MODEL [MODEL ...]

A MODEL is a directory or a GGUF file. Each line has the mean KL of the next token to an f32 cache, in f32.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from ouzel.backends.openvino import load, make_runner, read_config
from ouzel.backends.openvino.cache.cache_trial import CacheTrial
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, ModelConfig
from ouzel.model_store.model_directory import locate_model


def make_trial(directory: Path) -> CacheTrial:
    core, config, options = ov.Core(), read_config(directory), ModelConfig(model=str(directory))
    language_model = load(core, directory, config, options)
    return CacheTrial(
        language_model=language_model,
        model=options,
        engine=EngineConfig(),
        max_model_len=language_model.max_positions,
        make_runner=partial(make_runner, core, config=config),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    for name in parser.parse_args().models:
        trial = make_trial(locate_model(name).directory)
        token_ids = trial.read_token_ids()
        if token_ids is None:
            continue
        reference = trial.run("f32", token_ids)
        scales = trial.measure_scales(token_ids)
        figures = {
            "f16": trial.divergence(reference, trial.run("f16", token_ids)),
            "u8": trial.divergence(reference, trial.run("u8", token_ids)),
            "u8 with scaled keys": trial.divergence(reference, trial.run("u8", token_ids, scales)),
        }
        sys.stdout.write(
            f"{name}: " + ", ".join(f"{cache} {kl:.1e}" for cache, kl in figures.items()) + "\n"
        )


if __name__ == "__main__":
    main()
