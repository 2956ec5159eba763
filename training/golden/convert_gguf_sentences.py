"""Writes tests/gguf/golden_sentences/: checkpoints that make vectors or scores, as llama.cpp's own converter makes GGUF
files of them. See README.md.

    python -m training.golden.convert_gguf_sentences LLAMA_CPP [NAME ...]
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from training.golden.convert_gguf import TESTS, Config, every_class

GOLDEN, CHECKPOINTS = TESTS / "gguf" / "golden_sentences", TESTS / "backends" / "golden_sentences"


@dataclass(frozen=True)
class Case:
    has_tokenizer: bool = True  # False: the converter takes no tokenizer of this kind
    # The converter looks for a class of tokenizer that transformers no longer writes.
    is_wordpiece: bool = False
    change: Callable[[Config], Config] = lambda config: config


def _published_nomic(config: Config) -> Config:
    """Transformers has other keys than published checkpoints."""
    return config | {
        "architectures": ["NomicBertModel"],
        "n_positions": 8192,
        "activation_function": "swiglu",
        "causal": False,
        "qkv_proj_bias": False,
        "mlp_fc1_bias": False,
        "mlp_fc2_bias": False,
        "prenorm": False,
        "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False,
        "rotary_emb_scale_base": None,
        "rotary_emb_base": config["rope_parameters"]["rope_theta"],
    }


def _published_modernbert(config: Config) -> Config:
    """Published checkpoints have the thetas and the epsilon under further names."""
    thetas = config.pop("rope_parameters")
    return config | {
        "layer_norm_eps": config["norm_eps"],
        "global_rope_theta": thetas["full_attention"]["rope_theta"],
        "local_rope_theta": thetas["sliding_attention"]["rope_theta"],
        "global_attn_every_n_layers": 3,
    }


def _published_eurobert(config: Config) -> Config:
    """Published embedders do not have the pooling of a reranker."""
    del config["classifier_pooling"]
    return config


CASES = {
    "modernbert": Case(has_tokenizer=False, change=_published_modernbert),
    "cross-modernbert": Case(has_tokenizer=False, change=_published_modernbert),
    "eurobert": Case(has_tokenizer=False, change=_published_eurobert),
    "minilm": Case(),
    "bge": Case(),
    "nomic": Case(change=_published_nomic),
    "jina-v2": Case(is_wordpiece=True),
    "embedding-gemma": Case(has_tokenizer=False),
    "xlm-roberta": Case(has_tokenizer=False),
    "cross-xlm-roberta": Case(has_tokenizer=False),
    "qwen3-embedding": Case(has_tokenizer=False),
}


def convert(name: str, case: Case) -> None:
    import gguf  # noqa: PLC0415  llama.cpp's own, of the source that is given
    from conversion import get_model_class  # noqa: PLC0415
    from conversion.base import ModelBase, TextModel  # noqa: PLC0415

    config = case.change(ModelBase.load_hparams(CHECKPOINTS / name, False))
    model_class = get_model_class(config["architectures"][0])
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "default"  # it knows published ones only
    if not case.has_tokenizer:
        for each in every_class(TextModel):
            if "set_vocab" in vars(each):
                each.set_vocab = lambda self: None
    if case.is_wordpiece:
        model_class.set_vocab = lambda self: super(model_class, self).set_vocab()
    path = GOLDEN / f"{name}.gguf"
    model = model_class(
        CHECKPOINTS / name,
        gguf.LlamaFileType.ALL_F32,
        path,
        hparams=config,
        sentence_transformers_dense_modules=True,
    )
    getattr(model, "impl", model).write()


def main() -> None:
    llama_cpp, *names = sys.argv[1:]
    sys.path[:0] = [llama_cpp, str(Path(llama_cpp) / "gguf-py")]
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        convert(name, CASES[name])


if __name__ == "__main__":
    main()
