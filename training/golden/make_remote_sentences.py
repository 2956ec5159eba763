"""Writes checkpoints as programs outside of transformers save them. See README.md.

The vectors and scores are those of transformers' own model of the family. Afterwards the
checkpoint gets the names of tensors and the configuration that its authors' code has.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from training.golden.make_sentences import BASE, GOLDEN, TEXTS, Case, make_case, of_bert, of_roberta

HEAD_DIM = BASE["hidden_size"] // BASE["num_attention_heads"]
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class RemoteCase:
    """A case of transformers, and how its files are rewritten."""

    case: Case
    rewrite: Callable[[Path], None]


def ntk_parameters(theta: float, factor: float) -> dict[str, Any]:
    """The frequencies of Alibaba-NLP/new-impl, written as transformers' linear scaling.

    NTK multiplies the base by the factor, and divides the frequencies by factor ** (2 / head_dim):
    https://kexue.fm/archives/9706, formula 6; vLLM has it in rotary_embedding/ntk_scaling_rope.py.
    """
    scaling = factor ** (2 / HEAD_DIM)
    return {"rope_type": "linear", "rope_theta": theta * factor, "factor": scaling}


def write_tensors(directory: Path, tensors: Tensors) -> None:
    path = directory / "model.safetensors"
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, path, {"format": "pt"}
    )


def change_config(directory: Path, gone: tuple[str, ...], **values: object) -> None:
    path = directory / "config.json"
    config = json.loads(path.read_text())
    for key in gone:
        config.pop(key, None)
    path.write_text(json.dumps(config | values, indent=2) + "\n")


PLAIN_NAMES = {
    "attention.qkv_proj": "self_attn.qkv_proj",
    "attention.o_proj": "self_attn.o_proj",
    "attn_ln": "post_attention_layernorm",
    "mlp_ln": "post_mlp_layernorm",
    "encoder.layer.": "layers.",
    "mixer.Wqkv": "self_attn.qkv_proj",
    "mixer.out_proj": "self_attn.o_proj",
    "norm1": "post_attention_layernorm",
    "norm2": "post_mlp_layernorm",
    "emb_ln": "embeddings.LayerNorm",
    "encoder.layers.": "layers.",
}


def write_plain(directory: Path) -> None:
    """transformers saves the older, fused matrices; this writes its own names."""
    tensors: Tensors = {}
    for name, tensor in load_file(directory / "model.safetensors").items():
        for older, newer in PLAIN_NAMES.items():
            name = name.replace(older, newer)
        if ".qkv_proj." in name:
            parts = zip(("q", "k", "v"), tensor.chunk(3), strict=True)
            tensors |= {name.replace("qkv_proj", f"{each}_proj"): part for each, part in parts}
        elif ".up_gate_proj." in name:
            up, gate = tensor.chunk(2)
            tensors |= {name.replace("up_gate", "up"): up, name.replace("up_gate", "gate"): gate}
        else:
            tensors[name] = tensor
    write_tensors(directory, tensors)


def as_new(theta: float, factor: float, prefix: str, architecture: str) -> Callable[[Path], None]:
    """Rewrites a checkpoint of `gte` as one of Alibaba-NLP/new-impl."""

    def rewrite(directory: Path) -> None:
        tensors = load_file(directory / "model.safetensors")
        assert any("qkv_proj" in name for name in tensors), "transformers saves the older names"
        bare = {
            name.removeprefix("gte.").removeprefix("new."): each for name, each in tensors.items()
        }
        heads = ("classifier.",)
        named = {
            name if name.startswith(heads) else prefix + name: each for name, each in bare.items()
        }
        if architecture == "NewModel":  # the head for sparse vectors
            named["classifier.weight"] = torch.ones(1, BASE["hidden_size"])
            named["classifier.bias"] = torch.ones(1)
        write_tensors(directory, named)
        change_config(
            directory,
            ("rope_parameters",),
            model_type="new",
            architectures=[architecture],
            rope_theta=theta,
            rope_scaling={"factor": factor, "type": "ntk"},
            position_embedding_type="rope",
            layer_norm_type="layer_norm",
            logn_attention_scale=False,
            logn_attention_clip1=False,
            pack_qkv=True,
            unpad_inputs=False,
            use_memory_efficient_attention=False,
        )

    return rewrite


def gte(theta: float, factor: float, **values: Any) -> Case:
    settings = {"rope_parameters": ntk_parameters(theta, factor), **values.pop("settings", {})}
    return Case(model_type="gte", settings=settings, pooling="cls", **values)


TASKS = {
    "retrieval.query": "what is: ",
    "retrieval.passage": "the sea: ",
    "separation": "",
    "classification": "",
    "text-matching": "",
}
LORA = {"lora_rank": 2, "lora_alpha": 3}


def jina_adapters(tensors: Tensors) -> Tensors:
    """Random adapters for each task and each matrix, as jinaai/xlm-roberta-flash-implementation has
    them: W + alpha / rank * B A for linears, and W + alpha / rank * A B for embeddings.
    """
    generator = torch.Generator().manual_seed(3)
    rank, found = LORA["lora_rank"], {}
    for name, matrix in tensors.items():
        if matrix.dim() < 2 or "norm" in name.lower():
            continue
        rows, columns = matrix.shape
        is_embedding = "embeddings" in name
        shapes = (
            ((rows, rank), (rank, columns)) if is_embedding else ((rank, columns), (rows, rank))
        )
        for part, shape in zip("AB", shapes, strict=True):
            found[f"{name}.{part}"] = 0.3 * torch.randn((len(TASKS), *shape), generator=generator)
    return found


def merged(tensors: Tensors, adapters: Tensors, task: int) -> Tensors:
    scaling = LORA["lora_alpha"] / LORA["lora_rank"]
    result = dict(tensors)
    for name in {each.rpartition(".")[0] for each in adapters}:
        inner, outer = adapters[f"{name}.A"][task], adapters[f"{name}.B"][task]
        product = inner @ outer if "embeddings" in name else outer @ inner
        result[name] = tensors[name] + scaling * product
    return result


def write_jina(directory: Path) -> None:
    """Computes the vectors of each task with merged matrices; writes the older form."""
    tensors = load_file(directory / "model.safetensors")
    assert any("Wqkv" in name for name in tensors), "transformers saves the older names"
    adapters = jina_adapters(tensors)
    vectors = dict(np.load(directory / "golden.npz"))
    for number, (task, prompt) in enumerate(TASKS.items()):
        write_tensors(directory, merged(tensors, adapters, number))
        model = SentenceTransformer(
            str(directory), device="cpu", model_kwargs={"attn_implementation": "eager"}
        )
        vectors[f"vectors.{task}"] = model.encode([prompt + text for text in TEXTS], batch_size=3)
    np.savez_compressed(directory / "golden.npz", **vectors)
    stored: Tensors = {}
    for name, tensor in tensors.items():
        bare = name.removesuffix(".weight")
        if f"{name}.A" in adapters:
            stored[f"roberta.{bare}.parametrizations.weight.original"] = tensor
            for part in "AB":
                stored[f"roberta.{bare}.parametrizations.weight.0.lora_{part}"] = adapters[
                    f"{name}.{part}"
                ]
        else:
            stored[f"roberta.{name}"] = tensor
    write_tensors(directory, stored)
    change_config(
        directory,
        ("rope_parameters",),
        model_type="xlm-roberta",
        architectures=["XLMRobertaModel"],
        position_embedding_type="rotary",
        rotary_emb_base=20000.0,
        lora_adaptations=list(TASKS),
        task_instructions=TASKS,
        load_trained_adapters=True,
        emb_pooler="mean",
        matryoshka_dimensions=[8, 16, 32],
        use_flash_attn=True,
        **LORA,
    )
    modules = json.loads((directory / "modules.json").read_text())
    modules[0] |= {"type": "custom_st.Transformer", "kwargs": ["task"]}
    (directory / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")


CASES = {
    "jina-v3": RemoteCase(
        case=Case(
            model_type="jina_embeddings_v3",
            tokenizer=of_roberta,
            settings={"layer_norm_eps": 1e-5, "type_vocab_size": 1},
        ),
        rewrite=write_jina,
    ),
    "jina-v3-plain": RemoteCase(
        case=Case(
            model_type="jina_embeddings_v3",
            tokenizer=of_roberta,
            settings={"layer_norm_eps": 1e-5, "type_vocab_size": 1},
        ),
        rewrite=write_plain,
    ),
    "gte-plain": RemoteCase(
        case=Case(
            model_type="gte",
            tokenizer=of_bert,
            pooling="cls",
            settings={"type_vocab_size": 2, "pad_token_id": 0},
        ),
        rewrite=write_plain,
    ),
    "new": RemoteCase(
        case=gte(20000.0, 8.0, tokenizer=of_roberta),
        rewrite=as_new(20000.0, 8.0, "new.", "NewModel"),
    ),
    "new-without-types": RemoteCase(
        case=gte(
            500000.0, 2.0, tokenizer=of_bert, settings={"type_vocab_size": 0, "pad_token_id": 0}
        ),
        rewrite=as_new(500000.0, 2.0, "", "NewModel"),
    ),
    "cross-new": RemoteCase(
        case=gte(20000.0, 8.0, tokenizer=of_roberta, num_labels=1),
        rewrite=as_new(20000.0, 8.0, "new.", "NewForSequenceClassification"),
    ),
}


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name].case)
        CASES[name].rewrite(GOLDEN / name)
