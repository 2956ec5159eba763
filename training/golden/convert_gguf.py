"""Writes tests/gguf/golden/: some of the checkpoints as llama.cpp's own converter makes GGUF files of them.

They hold what the converter does to tensors besides giving them other names: it orders value heads otherwise, stores
what A_log stands for, parts and transposes matrices. It needs llama.cpp's source and, for what is stored as Q8_0, its
program llama-quantize. The checkpoints have no tokenizers, so the files have none. See README.md.

    python -m training.golden.convert_gguf LLAMA_CPP [QUANTIZE] [CASE ...]
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
PREDICTING = TESTS / "gguf" / "golden_prediction", TESTS / "backends" / "golden_prediction"


def _published_kinds(config: Config) -> None:
    kinds = {"linear_attention": "mamba", "full_attention": "attention"}
    config["layer_types"] = [kinds[kind] for kind in config["layer_types"]]


def _published_heads(config: Config) -> None:
    """Transformers 5 saves by layer what published checkpoints have under keys of their own."""
    own = next(iter(config.pop("per_layer_config").values()))
    config["global_head_dim"] = own["head_dim"]
    config["num_global_key_value_heads"] = own["num_key_value_heads"]


def _published_nemotron(config: Config) -> None:
    """Published checkpoints have a letter for each layer; the converter misses layers of an MLP without it.

    It looks for the size of Mamba's heads under a name that the family does not have.
    """
    config["mamba_d_head"] = config["mamba_head_dim"]
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    config["hybrid_override_pattern"] = "".join(
        letters[kind] for kind in config["layers_block_type"]
    )
    if "moe" not in config["layers_block_type"]:  # transformers 5 saves its default
        config.pop("num_experts_per_tok")


def _published_theta(config: Config) -> None:
    """Puts the scaling into the base, as the converter does; it knows heads of 128 only."""
    scaling, dims = config["rope_parameters"], config["head_dim"]
    theta = scaling["rope_theta"] * scaling["alpha"] ** (dims / (dims - 2))
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}


def _readable_scores(config: Config) -> None:
    """The converter does not know the name in published files."""
    config["scoring_func"] = "sigmoid"


def _published_rotation(config: Config) -> None:
    """Transformers 5 has GPT-NeoX's own key under a common name."""
    config["rotary_pct"] = config["rope_parameters"]["partial_rotary_factor"]


def _published_length(config: Config) -> None:
    """Transformers 5 drops BLOOM's length, which the converter reads."""
    config["seq_length"] = 2048


def _published_class(config: Config) -> None:
    """The converter knows MPT by the class in MosaicML's own code."""
    config["architectures"] = ["MPTForCausalLM"]


def _as_it_is(_: Config) -> None:
    pass


CASES: dict[
    str, tuple[str, Callable[[Config], None]]
] = {  # how it is stored, what is changed in config.json
    "apertus": ("BF16", _as_it_is),
    "bloom": ("BF16", _published_length),
    "mpt": ("BF16", _published_class),
    "deepseek-v3": ("Q8_0", _as_it_is),
    "falcon-h1": ("Q8_0", _as_it_is),
    "dots1": ("BF16", _readable_scores),
    "gemma3n": ("BF16", _as_it_is),
    "gemma4-experts": ("Q8_0", _published_heads),
    "glm4-moe-norms": ("BF16", _as_it_is),
    "granitemoehybrid-experts": ("Q8_0", _published_kinds),
    "mamba2": ("BF16", _as_it_is),
    "hunyuan-v1-moe": ("BF16", _published_theta),
    "minimax-m2": ("BF16", _as_it_is),
    "cohere-norms": ("BF16", _as_it_is),
    "gemma": ("BF16", _as_it_is),
    "gpt-neox": ("BF16", _published_rotation),
    "gpt2": ("BF16", _as_it_is),
    "olmo": ("BF16", _as_it_is),
    "phi": ("BF16", _as_it_is),
    "ministral3": ("BF16", _as_it_is),
    "nemotron-h-moe": ("BF16", _published_nemotron),
    "nemotron_h": ("BF16", _published_nemotron),
    "muse-glimmer": ("BF16", _as_it_is),
    "qwen3_5": ("BF16", _as_it_is),
}


def fill_layer_embeddings(directory: Path) -> None:
    """Gives tokens that Gemma 3n's table for layers lacks its first row, as transformers does.

    The converter gives them zeros. Published models have only tokens of images and sound there.
    """
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    config = json.loads((directory / "config.json").read_text())
    tensors = load_file(directory / "model.safetensors")
    name = "model.embed_tokens_per_layer.weight"
    missing = config["vocab_size"] - config["vocab_size_per_layer_input"]
    tensors[name] = torch.cat([tensors[name], tensors[name][:1].expand(missing, -1)])
    save_file(tensors, directory / "model.safetensors")


# Checkpoints with a layer that predicts further tokens.
PREDICTION_CASES: dict[str, tuple[str, Callable[[Config], None]]] = {
    "glm4-moe": ("BF16", _as_it_is),
    "qwen3_5": ("BF16", _as_it_is),
    "qwen3_5-moe": ("BF16", _as_it_is),
}


def every_class(base: type) -> Iterator[type]:
    yield base
    for each in base.__subclasses__():
        yield from every_class(each)


def convert(
    directory: Path, change: Callable[[Config], None], path: Path, *, predicts: bool = False
) -> None:
    import gguf  # noqa: PLC0415  llama.cpp's own, of the source that is given
    from conversion import get_model_class  # noqa: PLC0415
    from conversion.base import ModelBase, TextModel  # noqa: PLC0415

    config = ModelBase.load_hparams(directory, False)
    change(config)
    model_class = get_model_class(config["architectures"][0])
    for each in every_class(TextModel):
        if "set_vocab" in vars(each):
            each.set_vocab = lambda self: None
    model_class.no_mtp = not predicts
    model = model_class(directory, gguf.LlamaFileType.MOSTLY_BF16, path, hparams=config)
    getattr(model, "impl", model).write()


def write(
    name: str,
    case: tuple[str, Callable[[Config], None]],
    quantize: list[str],
    places: tuple[Path, Path],
) -> None:
    """Writes a case; `places` are the directories of GGUF files and of checkpoints."""
    (kind, change), (files, checkpoints) = case, places
    with tempfile.TemporaryDirectory() as temporary:
        directory, whole = Path(temporary) / name, Path(temporary) / "whole.gguf"
        shutil.copytree(checkpoints / name, directory)
        # The rows of an embedding that no token has are cut off.
        tokens = {
            "model": {"vocab": {str(token): token for token in range(128)}},
            "added_tokens": [],
        }
        (directory / "tokenizer.json").write_text(json.dumps(tokens))
        if name == "gemma3n":
            fill_layer_embeddings(directory)
        convert(directory, change, whole, predicts=places == PREDICTING)
        if kind == "BF16":
            shutil.copy(whole, files / f"{name}.gguf")
        else:
            subprocess.run([*quantize, whole, files / f"{name}.gguf", kind, "1"], check=True)


def main() -> None:
    known = {*CASES, *PREDICTION_CASES}
    llama_cpp, *quantize = [each for each in sys.argv[1:] if each not in known]
    named = [each for each in sys.argv[1:] if each in known] or known
    sys.path[:0] = [llama_cpp, f"{llama_cpp}/gguf-py"]
    for name, case in CASES.items():
        if name in named:
            write(name, case, quantize, (GOLDEN, CHECKPOINTS))
    for name, case in PREDICTION_CASES.items():
        if name in named:
            write(name, case, quantize, PREDICTING)


if __name__ == "__main__":
    main()
