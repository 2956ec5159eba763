"""Writes tests/backends/golden_sentences/: tiny random checkpoints that make vectors or scores. See README.md."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_sentences"
_WORDS = "the a cat dog sat on mat sun is hot ice cold who what where why rain wet snow river sea"
WORDS = f"{_WORDS} blue red".split()
TEXTS = [
    "the cat sat on the mat",
    "snow",
    "who is the dog and where is the river, what is the sea? the sea is blue and cold",
    "Ice is cold; the sun is hot. " * 3,
    "unknown wörds!",
]
QUERY = "where is the cat"
BASE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}
MAX_POSITIONS = 66
EUROBERT = {
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 250000.0},
}
DEBERTA = {  # the switches of deberta-v3
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "position_buckets": 8,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
}


def wordpiece(special: list[str]) -> tokenizers.Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters), *".,;!?", *WORDS]
    ids = {text: number for number, text in enumerate(dict.fromkeys(vocabulary))}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return tokenizer


def unigram() -> tokenizers.Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁",
        *letters,
        *".,;!?",
        *(f"▁{word}" for word in WORDS),
    ]
    scored = [
        (piece, 0.0 if number < 4 else -2.0 - len(piece) * 0.01)
        for number, piece in enumerate(pieces)
    ]
    tokenizer = tokenizers.Tokenizer(models.Unigram(scored, unk_id=3))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def of_bert() -> PreTrainedTokenizerFast:
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=wordpiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]),
        **names,
        model_max_length=MAX_POSITIONS - 2,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def of_roberta() -> PreTrainedTokenizerFast:
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=unigram(),
        **names,
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=MAX_POSITIONS - 2,
    )


def of_qwen() -> PreTrainedTokenizerFast:
    """Puts its end token behind every text, as Qwen3-Embedding's does."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "[UNK]"]
    tokenizer = wordpiece(
        [*special, "[CLS]", "[SEP]", "<think>", "</think>", "yes", "no", "<", ">", ":", "/"]
    )
    tokenizer.add_special_tokens(special[:3])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        unk_token="[UNK]",
        padding_side="left",
        model_max_length=512,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    model_type: str
    settings: dict[str, Any] = field(default_factory=dict)
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    pooling: Any = "mean"
    dense: tuple[int, ...] = ()
    normalises: bool = True
    num_labels: int = 0
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None


CASES = {
    "minilm": Case(model_type="bert", tokenizer=of_bert),
    "bge": Case(
        model_type="bert",
        tokenizer=of_bert,
        pooling="cls",
        prompts={"query": "what is: ", "passage": ""},
        default_prompt="query",
    ),
    "bert-poolings": Case(
        model_type="bert",
        tokenizer=of_bert,
        pooling=("max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"),
        normalises=False,
    ),
    "bert-dense": Case(model_type="bert", tokenizer=of_bert, dense=(24, 16)),
    "xlm-roberta": Case(
        model_type="xlm-roberta",
        settings={"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        tokenizer=of_roberta,
        pooling="cls",
    ),
    "nomic": Case(model_type="nomic_bert", tokenizer=of_bert, prompts={"search_query": "what: "}),
    "modernbert": Case(
        model_type="modernbert",
        settings={"local_attention": 8, "num_hidden_layers": 4, "pad_token_id": 0},
        tokenizer=of_bert,
        pooling="cls",
    ),
    "cross-bert": Case(model_type="bert", tokenizer=of_bert, num_labels=1),
    "cross-bert-labels": Case(model_type="bert", tokenizer=of_bert, num_labels=3),
    "cross-xlm-roberta": Case(
        model_type="xlm-roberta",
        settings={"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        tokenizer=of_roberta,
        num_labels=1,
    ),
    "cross-modernbert": Case(
        model_type="modernbert",
        settings={
            "local_attention": 8,
            "num_hidden_layers": 4,
            "pad_token_id": 0,
            "classifier_pooling": "mean",
        },
        tokenizer=of_bert,
        num_labels=1,
    ),
    # A pair of the real checkpoints is without token types; far distances share buckets.
    "deberta": Case(
        model_type="deberta-v2",
        settings={**DEBERTA, "share_att_key": False, "type_vocab_size": 2, "layer_norm_eps": 1e-7},
        tokenizer=of_bert,
    ),
    "cross-deberta": Case(
        model_type="deberta-v2",
        settings={**DEBERTA, "share_att_key": True, "layer_norm_eps": 1e-7},
        tokenizer=of_bert,
        num_labels=1,
    ),
    "cross-deberta-plain": Case(
        model_type="deberta-v2",
        settings={
            "relative_attention": True,
            "pos_att_type": ["c2p"],
            "position_biased_input": True,
        },
        tokenizer=of_bert,
        num_labels=3,
    ),
    "eurobert": Case(
        model_type="eurobert",
        settings={**EUROBERT, "num_key_value_heads": 2},
        tokenizer=of_bert,
    ),
    "cross-eurobert": Case(
        model_type="eurobert", settings=EUROBERT, tokenizer=of_bert, num_labels=1
    ),
    "cross-eurobert-bos": Case(
        model_type="eurobert",
        settings={
            **EUROBERT,
            "classifier_pooling": "bos",
            "mlp_bias": True,
            "attention_bias": True,
        },
        tokenizer=of_bert,
        num_labels=1,
    ),
    "qwen3-embedding": Case(
        model_type="qwen3",
        settings={"num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512},
        tokenizer=of_qwen,
        pooling="lasttoken",
        prompts={"query": "Instruct: what is it\nQuery:", "document": ""},
    ),
    "qwen3-classifier": Case(
        model_type="qwen3",
        settings={
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 512,
            "pad_token_id": 0,
        },
        tokenizer=of_qwen,
        num_labels=1,
    ),
    "qwen3-reranker": Case(
        model_type="qwen3",
        settings={
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 512,
            "tie_word_embeddings": True,
        },
        tokenizer=of_qwen,
        num_labels=-1,
    ),
}


def fill(module: nn.Module, seed: int) -> None:
    """Weights large enough that attention is far from uniform, norms and biases far from neutral."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in module.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if "norm" in name.lower() and name.endswith("weight"):
                tensor.copy_(1 + 0.2 * noise)
            elif tensor.dim() < 2:
                tensor.copy_(0.3 * noise)
            else:
                tensor.copy_(noise * (1.5 / tensor.shape[-1] ** 0.5))


def random_model(case: Case, vocab_size: int) -> Any:
    settings = {
        "max_position_embeddings": MAX_POSITIONS,
        **BASE,
        **case.settings,
        "vocab_size": vocab_size,
    }
    config = AutoConfig.for_model(case.model_type, **settings)
    if case.num_labels > 0:
        config.num_labels = case.num_labels
    kind = AutoModelForCausalLM if case.num_labels < 0 else AutoModelForSequenceClassification
    model = (kind if case.num_labels else AutoModel).from_config(
        config, attn_implementation="eager"
    )
    fill(model, 1)
    return model.float().eval()


def write_vectors(directory: Path, case: Case) -> dict[str, np.ndarray[Any, Any]]:
    transformer = Transformer(str(directory), model_kwargs={"attn_implementation": "eager"})
    size = BASE["hidden_size"]
    modules: list[nn.Module] = [transformer, Pooling(size, case.pooling)]
    size *= 1 if isinstance(case.pooling, str) else len(case.pooling)
    for number, outputs in enumerate(case.dense):
        dense = Dense(
            size,
            outputs,
            bias=number == 0,
            activation_function=nn.Tanh() if number == 0 else nn.Identity(),
        )
        fill(dense, 2)
        modules.append(dense)
        size = outputs
    if case.normalises:
        modules.append(Normalize())
    model = SentenceTransformer(
        modules=modules, prompts=case.prompts or None, default_prompt_name=case.default_prompt
    )
    model.save(str(directory), create_model_card=False)
    read = SentenceTransformer(
        str(directory), device="cpu", model_kwargs={"attn_implementation": "eager"}
    )
    vectors = {"vectors": read.encode(TEXTS, batch_size=3, normalize_embeddings=False)}
    for name in case.prompts:
        vectors[f"vectors.{name}"] = read.encode(TEXTS, prompt_name=name)
    return vectors


def write_scores(directory: Path, case: Case) -> dict[str, np.ndarray[Any, Any]]:
    read = CrossEncoder(str(directory), device="cpu", model_kwargs={"attn_implementation": "eager"})
    return {"scores": read.predict([(QUERY, text) for text in TEXTS], batch_size=3)}


def reranker_scores(
    model: Any, tokenizer: PreTrainedTokenizerFast, *, has_head: bool
) -> dict[str, np.ndarray[Any, Any]]:
    """As the card of Qwen3-Reranker has it, and those of its conversions to one with a head."""
    instruction = "Given a web search query, retrieve relevant passages that answer the query"
    prefix = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    )
    suffix = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ids = [tokenizer.convert_tokens_to_ids(token) for token in ("no", "yes")]
    scores = []
    for text in TEXTS:
        pair = f"<Instruct>: {instruction}\n<Query>: {QUERY}\n<Document>: {text}"
        token_ids = tokenizer.encode(prefix + pair + suffix, add_special_tokens=False)
        with torch.no_grad():
            logits = model(torch.tensor([token_ids])).logits[0]
        score = torch.sigmoid(logits[0]) if has_head else torch.softmax(logits[-1][ids], 0)[1]
        scores.append(score.item())
    return {"scores": np.array(scores, np.float32)}


def make_case(name: str, case: Case) -> None:
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    tokenizer = case.tokenizer()
    model = random_model(case, len(tokenizer))
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if not case.num_labels:
        arrays = write_vectors(directory, case)
    elif case.model_type != "qwen3":
        arrays = write_scores(directory, case)
    else:
        arrays = reranker_scores(model, tokenizer, has_head=case.num_labels > 0)
    (directory / "golden.json").write_text(json.dumps({"texts": TEXTS, "query": QUERY}) + "\n")
    np.savez_compressed(
        directory / "golden.npz", **{key: value.astype(np.float32) for key, value in arrays.items()}
    )
    for unused in ("README.md", "special_tokens_map.json"):
        (directory / unused).unlink(missing_ok=True)
    print(name, {key: value.shape for key, value in arrays.items()})


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])
