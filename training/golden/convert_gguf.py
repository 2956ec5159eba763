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


def _published_phimoe(config: Config) -> None:
    """Published checkpoints write the name of the class otherwise."""
    config["architectures"] = ["PhiMoEForCausalLM"]


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
    "falcon-mamba": ("BF16", _as_it_is),
    "mamba2": ("BF16", _as_it_is),
    "phimoe": ("BF16", _published_phimoe),
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


def _as_chatglm(config: Config) -> None:
    """Puts the length of the context under the only name that the converter knows."""
    config["seq_length"] = config["max_position_embeddings"]
    config["layernorm_epsilon"] = config["rms_norm_eps"]


def _as_fused_chatglm(config: Config) -> None:
    _as_chatglm(config)
    config |= {
        "architectures": ["ChatGLMModel"],
        "multi_query_group_num": config.pop("num_key_value_heads"),
        "ffn_hidden_size": config.pop("intermediate_size"),
        "layernorm_epsilon": config.pop("rms_norm_eps"),
        "padded_vocab_size": config["vocab_size"],
        "rope_ratio": 1,
    }


def _as_exaone(config: Config) -> None:
    config |= {"architectures": ["ExaoneForCausalLM"], "activation_function": "silu"}


def _as_internlm2(config: Config) -> None:
    config["architectures"] = ["InternLM2ForCausalLM"]


# Families of remote code that have the tensors of a family in transformers: file, checkpoint, what
# is changed in config.json, and patterns of names with their names in the remote code.
RENAMED: dict[str, tuple[str, Callable[[Config], None], dict[str, str]]] = {
    "chatglm": ("glm-usual-heads", _as_chatglm, {}),
    "chatglm-fused": (
        "glm-usual-heads",
        _as_fused_chatglm,
        {
            "model.embed_tokens": "transformer.embedding.word_embeddings",
            "model.norm": "transformer.encoder.final_layernorm",
            "lm_head": "transformer.output_layer",
            "self_attn.o_proj": "self_attention.dense",
            "self_attn.qkv": "self_attention.query_key_value",
            "mlp.gate_up_proj": "mlp.dense_h_to_4h",
            "mlp.down_proj": "mlp.dense_4h_to_h",
            "model.layers": "transformer.encoder.layers",
        },
    ),
    "exaone": (
        "llama3",
        _as_exaone,
        {
            "model.embed_tokens": "transformer.wte",
            "model.norm": "transformer.ln_f",
            "self_attn.o_proj": "attn.attention.out_proj",
            "self_attn": "attn.attention",
            "mlp.gate_proj": "mlp.c_fc_0",
            "mlp.up_proj": "mlp.c_fc_1",
            "mlp.down_proj": "mlp.c_proj",
            "input_layernorm": "ln_1",
            "post_attention_layernorm": "ln_2",
            "model.layers": "transformer.h",
        },
    ),
    "internlm2": (
        "llama",
        _as_internlm2,
        {
            "model.embed_tokens": "model.tok_embeddings",
            "lm_head": "output",
            "self_attn.o_proj": "attention.wo",
            "self_attn.qkv": "attention.wqkv",
            "mlp.gate_proj": "feed_forward.w1",
            "mlp.up_proj": "feed_forward.w3",
            "mlp.down_proj": "feed_forward.w2",
            "input_layernorm": "attention_norm",
            "post_attention_layernorm": "ffn_norm",
        },
    ),
}


def rename(directory: Path, names: dict[str, str]) -> None:
    """Renames the tensors of a checkpoint; `self_attn.qkv` are the three projections in one.

    InternLM 2 has the queries of each key head, its keys and its values in turn.
    """
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    config = json.loads((directory / "config.json").read_text())
    num_groups = config["num_key_value_heads"] if names.get("lm_head") == "output" else 1
    tensors = load_file(directory / "model.safetensors")
    if any("qkv" in name for name in names):
        for name in [name for name in tensors if ".q_proj." in name]:
            parts = [tensors.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
            groups = [part.reshape(num_groups, -1, *part.shape[1:]) for part in parts]
            whole = torch.cat(groups, dim=1)
            tensors[name.replace("q_proj", "qkv")] = whole.reshape(-1, *whole.shape[2:])
    renamed = {}
    for name, tensor in tensors.items():
        for theirs, own in names.items():
            name = name.replace(theirs, own)  # noqa: PLW2901  several names, one after the other
        renamed[name] = tensor.contiguous()
    save_file(renamed, directory / "model.safetensors")


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
    kinds = gguf.LlamaFileType
    kind = kinds.ALL_F32 if config["dtype"] == "float32" else kinds.MOSTLY_BF16
    model = model_class(directory, kind, path, hparams=config)
    getattr(model, "impl", model).write()


def write(
    name: str,
    case: tuple[str, Callable[[Config], None]],
    quantize: list[str],
    places: tuple[Path, Path],
    renamed: tuple[str, dict[str, str]] | None = None,
) -> None:
    """Writes a case; `places` are the directories of GGUF files and of checkpoints.

    `renamed` is another checkpoint, and the names that its tensors get.
    """
    (kind, change), (files, checkpoints) = case, places
    with tempfile.TemporaryDirectory() as temporary:
        directory, whole = Path(temporary) / name, Path(temporary) / "whole.gguf"
        shutil.copytree(checkpoints / (renamed[0] if renamed else name), directory)
        if renamed:
            rename(directory, renamed[1])
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
    known = {*CASES, *PREDICTION_CASES, *RENAMED}
    llama_cpp, *quantize = [each for each in sys.argv[1:] if each not in known]
    named = [each for each in sys.argv[1:] if each in known] or known
    sys.path[:0] = [llama_cpp, f"{llama_cpp}/gguf-py"]
    for name, case in CASES.items():
        if name in named:
            write(name, case, quantize, (GOLDEN, CHECKPOINTS))
    for name, (checkpoint, change, names) in RENAMED.items():
        if name in named:
            places = (GOLDEN, CHECKPOINTS)
            write(name, ("BF16", change), quantize, places, (checkpoint, names))
    for name, case in PREDICTION_CASES.items():
        if name in named:
            write(name, case, quantize, PREDICTING)


if __name__ == "__main__":
    main()
