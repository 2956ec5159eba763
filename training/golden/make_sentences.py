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
from safetensors.torch import save_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

from training.golden.jina_bert import JinaBert

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
LONG_TEXT = "the cat sat on the mat. is snow cold? " * 20
LONG_POSITIONS = 300


def wordpiece(
    special: list[str], first: str = "[CLS]", last: str = "[SEP]"
) -> tokenizers.Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters), *".,;!?", *WORDS]
    ids = {text: number for number, text in enumerate(dict.fromkeys(vocabulary))}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(first, ids[first]), (last, ids[last])],
    )
    return tokenizer


def unigram(special: tuple[str, ...] = ("<s>", "<pad>", "</s>", "<unk>")) -> tokenizers.Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [
        *special,
        "▁",
        *letters,
        *".,;!?",
        *(f"▁{word}" for word in WORDS),
    ]
    scored = [
        (piece, 0.0 if number < 4 else -2.0 - len(piece) * 0.01)
        for number, piece in enumerate(pieces)
    ]
    tokenizer = tokenizers.Tokenizer(models.Unigram(scored, unk_id=special.index("<unk>")))
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


def of_distilbert() -> PreTrainedTokenizerFast:
    tokenizer = of_bert()
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def of_mpnet() -> PreTrainedTokenizerFast:
    """Has the words of BERT and the special tokens of RoBERTa, with room for a long text."""
    tokenizer = wordpiece(["<s>", "<pad>", "</s>", "<unk>", "[UNK]"], "<s>", "</s>")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"pad_token": "<pad>", "unk_token": "[UNK]", "cls_token": "<s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **names,
        model_max_length=LONG_POSITIONS - 2,
        model_input_names=["input_ids", "attention_mask"],
    )


def of_albert() -> PreTrainedTokenizerFast:
    """Has the pieces of SentencePiece and the special tokens of BERT."""
    tokenizer = unigram(("<pad>", "<unk>", "[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **names,
        model_max_length=MAX_POSITIONS - 2,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def of_gemma() -> PreTrainedTokenizerFast:
    tokenizer = unigram(("<pad>", "<eos>", "<bos>", "<unk>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>",
        pair="<bos> $A <eos> $B <eos>",
        special_tokens=[("<bos>", 2), ("<eos>", 1)],
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **names, model_max_length=LONG_POSITIONS
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
    is_dense_plain: bool = False  # Dense modules without activations and biases
    normalises: bool = True
    num_labels: int = 0
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    further_texts: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [*TEXTS, *self.further_texts]


MPNET = {"max_position_embeddings": LONG_POSITIONS, "layer_norm_eps": 1e-5}
EMBEDDING_GEMMA = {
    "use_bidirectional_attention": True,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "query_pre_attn_scalar": 8,
    "sliding_window": 12,
    "layer_types": [*["sliding_attention"] * 3, "full_attention"],
    "max_position_embeddings": LONG_POSITIONS,
}

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
    "jina-v2": Case(
        model_type="bert",
        settings={
            "position_embedding_type": "alibi",
            "feed_forward_type": "geglu",
            # no power of two: two of the heads have slopes of another sequence
            "num_attention_heads": 6,
            "hidden_size": 36,
        },
        tokenizer=of_bert,
    ),
    "modernbert": Case(
        model_type="modernbert",
        settings={"local_attention": 8, "num_hidden_layers": 4, "pad_token_id": 0},
        tokenizer=of_bert,
        pooling="cls",
    ),
    "mpnet": Case(
        model_type="mpnet",
        settings=MPNET,
        tokenizer=of_mpnet,
        further_texts=(LONG_TEXT,),
    ),
    "distilbert": Case(
        model_type="distilbert", settings={"hidden_dim": 48}, tokenizer=of_distilbert, dense=(24,)
    ),
    "embedding-gemma": Case(
        model_type="gemma3_text",
        settings=EMBEDDING_GEMMA,
        tokenizer=of_gemma,
        dense=(48, 32),
        is_dense_plain=True,
        prompts={
            "query": "task: search result | query: ",
            "document": "title: none | text: ",
            "Retrieval-query": "task: search result | query: ",
            "STS": "task: sentence similarity | query: ",
        },
    ),
    "camembert": Case(
        model_type="camembert",
        settings={"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        tokenizer=of_roberta,
    ),
    "electra": Case(model_type="electra", settings={"embedding_size": 16}, tokenizer=of_bert),
    "albert": Case(model_type="albert", settings={"embedding_size": 16}, tokenizer=of_albert),
    "cross-mpnet": Case(
        model_type="mpnet",
        settings=MPNET,
        tokenizer=of_mpnet,
        num_labels=1,
    ),
    "cross-distilbert": Case(
        model_type="distilbert", settings={"hidden_dim": 48}, tokenizer=of_distilbert, num_labels=1
    ),
    "cross-camembert": Case(
        model_type="camembert",
        settings={"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        tokenizer=of_roberta,
        num_labels=1,
    ),
    "cross-electra": Case(
        model_type="electra", settings={"embedding_size": 32}, tokenizer=of_bert, num_labels=1
    ),
    "cross-albert": Case(
        model_type="albert",
        settings={
            "embedding_size": 16,
            "num_hidden_layers": 4,
            "num_hidden_groups": 2,
            "inner_group_num": 2,
        },
        tokenizer=of_albert,
        num_labels=1,
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


def fill(module: nn.Module, seed: int, neutral: float = 1.0) -> None:
    """Weights large enough that attention is far from uniform, norms and biases far from neutral.

    `neutral` is the stored weight of a norm that changes nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in module.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if "norm" in name.lower() and name.endswith("weight"):
                tensor.copy_(neutral + 0.2 * noise)
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
    fill(model, 1, 0.0 if case.model_type == "gemma3_text" else 1.0)
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
            bias=number == 0 and not case.is_dense_plain,
            activation_function=nn.Tanh()
            if number == 0 and not case.is_dense_plain
            else nn.Identity(),
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
    vectors = {"vectors": read.encode(case.texts, batch_size=3, normalize_embeddings=False)}
    for name in case.prompts:
        vectors[f"vectors.{name}"] = read.encode(case.texts, prompt_name=name)
    return vectors


def write_jina(
    directory: Path, case: Case, tokenizer: PreTrainedTokenizerFast
) -> dict[str, np.ndarray[Any, Any]]:
    """Writes the checkpoint, and the files of sentence-transformers without its transformer."""
    settings = {"max_position_embeddings": MAX_POSITIONS, **BASE, **case.settings}
    config = AutoConfig.for_model("bert", **settings, vocab_size=len(tokenizer))
    config.architectures = ["JinaBertForMaskedLM"]
    model = JinaBert(config).eval()
    fill(model, 1)
    config.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    (directory / "1_Pooling").mkdir()
    save_file(model.state_dict(), directory / "model.safetensors", {"format": "pt"})
    Pooling(config.hidden_size, case.pooling).save(str(directory / "1_Pooling"))
    shutil.copytree(GOLDEN / "minilm" / "2_Normalize", directory / "2_Normalize")
    for name in ("modules.json", "sentence_bert_config.json"):
        shutil.copy(GOLDEN / "minilm" / name, directory)
    with torch.no_grad():
        means = [model(torch.tensor(tokenizer(text)["input_ids"])).mean(0) for text in case.texts]
    return {"vectors": nn.functional.normalize(torch.stack(means)).numpy()}


def write_scores(directory: Path, case: Case) -> dict[str, np.ndarray[Any, Any]]:
    read = CrossEncoder(str(directory), device="cpu", model_kwargs={"attn_implementation": "eager"})
    return {"scores": read.predict([(QUERY, text) for text in case.texts], batch_size=3)}


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
    if name == "jina-v2":
        arrays = write_jina(directory, case, tokenizer)
        write_golden(directory, name, case, arrays)
        return
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
    write_golden(directory, name, case, arrays)


def write_golden(
    directory: Path, name: str, case: Case, arrays: dict[str, np.ndarray[Any, Any]]
) -> None:
    (directory / "golden.json").write_text(json.dumps({"texts": case.texts, "query": QUERY}) + "\n")
    np.savez_compressed(
        directory / "golden.npz", **{key: value.astype(np.float32) for key, value in arrays.items()}
    )
    for unused in ("README.md", "special_tokens_map.json"):
        (directory / unused).unlink(missing_ok=True)
    print(name, {key: value.shape for key, value in arrays.items()})


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])
