"""Writes tests/gguf/golden/: some of the checkpoints as llama.cpp's own converter makes GGUF files of them.

They hold what the converter does to tensors besides giving them other names: it orders value heads otherwise, stores
what A_log stands for, parts and transposes matrices. It needs llama.cpp's source and, for what is stored as Q8_0, its
program llama-quantize. The checkpoints have no tokenizers, so the files have none. See README.md.

    python -m training.golden.convert_gguf LLAMA_CPP [QUANTIZE]
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Config = dict[str, Any]  # JSON

TESTS = Path(__file__).parents[2] / "tests"
GOLDEN, CHECKPOINTS = TESTS / "gguf" / "golden", TESTS / "backends" / "golden"


def _published_kinds(config: Config) -> None:
    kinds = {"linear_attention": "mamba", "full_attention": "attention"}
    config["layer_types"] = [kinds[kind] for kind in config["layer_types"]]


def _published_heads(config: Config) -> None:
    """Transformers 5 saves by layer what published checkpoints have under keys of their own."""
    own = next(iter(config.pop("per_layer_config").values()))
    config["global_head_dim"] = own["head_dim"]
    config["num_global_key_value_heads"] = own["num_key_value_heads"]


def _published_rotation(config: Config) -> None:
    """Transformers 5 has GPT-NeoX's own key under a common name."""
    config["rotary_pct"] = config["rope_parameters"]["partial_rotary_factor"]


def _as_it_is(_: Config) -> None:
    pass


CASES: dict[
    str, tuple[str, Callable[[Config], None]]
] = {  # how it is stored, what is changed in config.json
    "cohere-norms": ("BF16", _as_it_is),
    "deepseek-v3": ("Q8_0", _as_it_is),
    "gemma": ("BF16", _as_it_is),
    "gemma4-experts": ("Q8_0", _published_heads),
    "gpt-neox": ("BF16", _published_rotation),
    "gpt2": ("BF16", _as_it_is),
    "granitemoehybrid-experts": ("Q8_0", _published_kinds),
    "olmo": ("BF16", _as_it_is),
    "phi": ("BF16", _as_it_is),
    "ministral3": ("BF16", _as_it_is),
    "qwen3_5": ("BF16", _as_it_is),
}


def every_class(base: type) -> Iterator[type]:
    yield base
    for each in base.__subclasses__():
        yield from every_class(each)


def convert(directory: Path, change: Callable[[Config], None], path: Path) -> None:
    import gguf  # noqa: PLC0415  llama.cpp's own, of the source that is given
    from conversion import get_model_class  # noqa: PLC0415
    from conversion.base import ModelBase, TextModel  # noqa: PLC0415

    config = ModelBase.load_hparams(directory, False)
    change(config)
    model_class = get_model_class(config["architectures"][0])
    for each in every_class(TextModel):
        if "set_vocab" in vars(each):
            each.set_vocab = lambda self: None
    model_class.no_mtp = True
    model = model_class(directory, gguf.LlamaFileType.MOSTLY_BF16, path, hparams=config)
    getattr(model, "impl", model).write()


def main() -> None:
    llama_cpp, *quantize = sys.argv[1:]
    sys.path[:0] = [llama_cpp, f"{llama_cpp}/gguf-py"]
    for name, (kind, change) in CASES.items():
        with tempfile.TemporaryDirectory() as temporary:
            directory, whole = Path(temporary) / name, Path(temporary) / "whole.gguf"
            shutil.copytree(CHECKPOINTS / name, directory)
            # The rows of an embedding that no token has are cut off.
            tokens = {
                "model": {"vocab": {str(token): token for token in range(128)}},
                "added_tokens": [],
            }
            (directory / "tokenizer.json").write_text(json.dumps(tokens))
            convert(directory, change, whole)
            if kind == "BF16":
                shutil.copy(whole, GOLDEN / f"{name}.gguf")
            else:
                subprocess.run([*quantize, whole, GOLDEN / f"{name}.gguf", kind, "1"], check=True)


if __name__ == "__main__":
    main()
