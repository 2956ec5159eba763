"""Writes tests/backends/golden_late/: tiny random checkpoints with a vector of each token. See README.md."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import PreTrainedTokenizerFast

from training.golden.make_sentences import (
    BASE,
    Case,
    fill,
    of_roberta,
    random_model,
    wordpiece,
)

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_late"
QUERIES = ["where is the cat", "snow", "who is the dog and where is the river? " * 2]
DOCUMENTS = [
    "the cat sat on the mat.",
    "snow",
    "Ice is cold; the sun is hot, and the sea is blue. the dog sat on the mat!",
    "where is the river? " * 9,
    "unknown wörds!",
]
SIZE = BASE["hidden_size"]
QUERY_LEN, DOCUMENT_LEN = 12, 24
Arrays = dict[str, np.ndarray[Any, Any]]
EAGER = {"attn_implementation": "eager"}
MODERNBERT = {
    # The window reaches all tokens of a query: where it reaches no token that may be read, as with
    # a narrower one, the authority takes the mean of all tokens.
    "local_attention": 32,
    "num_hidden_layers": 4,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
}


def of_colbert(
    *markers: str, max_len: int = DOCUMENT_LEN - 1
) -> Callable[[], PreTrainedTokenizerFast]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def make() -> PreTrainedTokenizerFast:
        tokenizer = wordpiece([*special, "[unused0]", "[unused1]"])
        names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
        made = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            **dict(zip(names, special, strict=True)),
            model_max_length=max_len,  # PyLate leaves the last length that it used
            model_input_names=["input_ids", "attention_mask"],
        )
        made.add_tokens(list(markers))
        return made

    return make


def write_base(directory: Path, case: Case) -> PreTrainedTokenizerFast:
    shutil.rmtree(directory, ignore_errors=True)
    tokenizer = case.tokenizer()
    random_model(case, len(tokenizer)).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return tokenizer


def edit_json(path: Path, **values: object) -> None:
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(content | values, indent=2) + "\n")


def token_dense(num_inputs: int, num_outputs: int, **settings: Any) -> Dense:
    settings = {"bias": False, "activation_function": nn.Identity(), **settings}
    dense = Dense(num_inputs, num_outputs, module_input_name="token_embeddings", **settings)
    fill(dense, 2)
    return dense


def read_vectors(directory: Path) -> Arrays:
    """Computes the vectors of queries and documents and their scores, each text alone."""
    model = MultiVectorEncoder(str(directory), device="cpu", model_kwargs=EAGER)
    queries = [model.encode_query(text).cpu().numpy() for text in QUERIES]
    documents = [model.encode_document(text).cpu().numpy() for text in DOCUMENTS]
    scores = model.similarity(queries, documents).cpu().numpy()
    arrays = {f"query{index}": rows for index, rows in enumerate(queries)}
    arrays |= {f"document{index}": rows for index, rows in enumerate(documents)}
    return arrays | {"scores": scores}


def make_hf_colbert(directory: Path) -> Arrays:
    """As colbert-ir/colbertv2.0: the head among the weights, settings in artifact.metadata."""
    write_base(directory, Case(model_type="bert", tokenizer=of_colbert()))
    tensors = load_file(directory / "model.safetensors")
    linear = nn.Linear(SIZE, 16, bias=False)
    fill(linear, 2)
    renamed = {f"bert.{name}": tensor for name, tensor in tensors.items()}
    save_file(
        renamed | {"linear.weight": linear.weight.detach()},
        directory / "model.safetensors",
        metadata={"format": "pt"},
    )
    edit_json(directory / "config.json", architectures=["HF_ColBERT"])
    metadata = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_maxlen": QUERY_LEN,
        "doc_maxlen": DOCUMENT_LEN,
        "dim": 16,
        "similarity": "cosine",
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
    }
    (directory / "artifact.metadata").write_text(json.dumps(metadata, indent=4) + "\n")
    return read_vectors(directory)


def make_pylate(directory: Path, case: Case, denses: list[Dense], **settings: object) -> Arrays:
    """As PyLate saves a model: modules.json with its Dense, settings beside the prompts."""
    write_base(directory, case)
    transformer = Transformer(str(directory), model_kwargs=EAGER)
    SentenceTransformer(modules=[transformer, Pooling(SIZE), *denses]).save(
        str(directory), create_model_card=False
    )
    shutil.rmtree(directory / "1_Pooling")
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    ]
    for index in range(1, len(denses) + 1):
        (directory / f"{index + 1}_Dense").rename(directory / f"{index}_Dense")
        entry = {"idx": index, "name": str(index), "path": f"{index}_Dense"}
        modules.append(entry | {"type": "pylate.models.Dense.Dense"})
        path = directory / f"{index}_Dense" / "config.json"
        config = json.loads(path.read_text())
        config.pop("module_input_name"), config.pop("module_output_name", None)
        path.write_text(json.dumps(config) + "\n")
    (directory / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")
    limit = {"max_seq_length": DOCUMENT_LEN - 1, "do_lower_case": False}
    (directory / "sentence_bert_config.json").write_text(json.dumps(limit) + "\n")
    own = {
        "model_type": "ColBERT",
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "MaxSim",
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": QUERY_LEN,
        "document_length": DOCUMENT_LEN,
        "attend_to_expansion_tokens": False,
        **settings,
    }
    (directory / "config_sentence_transformers.json").write_text(json.dumps(own, indent=2) + "\n")
    return read_vectors(directory)


def make_multi_vector(directory: Path) -> Arrays:
    """As sentence-transformers saves a MultiVectorEncoder: markers are prompts, queries grow to 12."""
    write_base(directory, Case(model_type="bert", tokenizer=of_colbert(max_len=64)))
    expansion = {"strategy": "min", "length": QUERY_LEN, "attend": True}
    transformer = Transformer(
        str(directory),
        model_kwargs=EAGER,
        document_length=DOCUMENT_LEN,
        query_expansion=expansion,
    )
    mask, normalize = MultiVectorMask([".", ","]), Normalize(module_input_name="token_embeddings")
    model = MultiVectorEncoder(
        modules=[transformer, token_dense(SIZE, 16), mask, normalize],
        prompts={"query": "who: ", "document": "what: "},
        similarity_fn_name="meanmaxsim",
    )
    model.save(str(directory), create_model_card=False)
    return read_vectors(directory)


def make_bge_m3(directory: Path) -> Arrays:
    """As BAAI/bge-m3: an XLM-RoBERTa, and two heads in files of torch.save."""
    settings = {"type_vocab_size": 1, "layer_norm_eps": 1e-5}
    case = Case(model_type="xlm-roberta", settings=settings, tokenizer=of_roberta)
    tokenizer = write_base(directory, case)
    transformer = Transformer(str(directory), model_kwargs=EAGER)
    modules = [transformer, Pooling(SIZE, "cls"), Normalize()]
    dense = SentenceTransformer(modules=modules, device="cpu")
    dense.save(str(directory), create_model_card=False)
    torch.save(load_file(directory / "model.safetensors"), directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    heads = {"colbert": nn.Linear(SIZE, SIZE), "sparse": nn.Linear(SIZE, 1)}
    for name, head in heads.items():
        fill(head, 3)
        with torch.no_grad():
            head.bias -= 0.6  # some weights of tokens are negative
        torch.save(head.state_dict(), directory / f"{name}_linear.pt")
    unused = {tokenizer.cls_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
    unused.add(tokenizer.unk_token_id)
    arrays: Arrays = {}
    for kind, texts in (("query", QUERIES), ("document", DOCUMENTS)):
        for index, text in enumerate(texts):
            inputs = tokenizer(text, return_tensors="pt", max_length=64, truncation=True)
            with torch.no_grad():
                rows = transformer.auto_model(**inputs).last_hidden_state[0]
                weights = torch.relu(heads["sparse"](rows))[:, 0]
                vectors = nn.functional.normalize(heads["colbert"](rows[1:]), dim=-1)
            lexical: dict[int, float] = {}
            for token_id, weight in zip(
                inputs["input_ids"][0].tolist(), weights.tolist(), strict=True
            ):
                if token_id not in unused and weight > lexical.get(token_id, 0):
                    lexical[token_id] = weight
            whole = nn.functional.normalize(rows[0], dim=-1)
            arrays |= {
                f"{kind}{index}": vectors.numpy(),
                f"{kind}{index}.whole": whole.numpy(),
                f"{kind}{index}.weights": weights[1:-1].numpy(),
                f"{kind}{index}.lexical": np.array(sorted(lexical.items()), np.float64),
            }
    pairs = [
        [
            (arrays[f"query{q}"] @ arrays[f"document{d}"].T).max(1).mean()
            for d in range(len(DOCUMENTS))
        ]
        for q in range(len(QUERIES))
    ]
    return arrays | {"scores": np.array(pairs)}


CASES: dict[str, Callable[[Path], Arrays]] = {
    "hf-colbert": make_hf_colbert,
    "pylate-modernbert": lambda directory: make_pylate(
        directory,
        Case(
            model_type="modernbert",
            settings=MODERNBERT,
            tokenizer=of_colbert("[Q] ", "[D] "),
        ),
        [token_dense(SIZE, 16)],
    ),
    # As mxbai-edge-colbert: layers with residuals, no expansion, no words left out.
    "pylate-residual": lambda directory: make_pylate(
        directory,
        Case(model_type="bert", tokenizer=of_colbert("[Q] ", "[D] ")),
        [
            token_dense(SIZE, 64, use_residual=True),
            token_dense(64, 64, use_residual=True),
            token_dense(64, 8),
        ],
        do_query_expansion=False,
        skiplist_words=[],
        prompts={"query": "who: "},
    ),
    "multi-vector": make_multi_vector,
    "bge-m3": make_bge_m3,
}


def make_case(name: str) -> None:
    directory = GOLDEN / name
    arrays = CASES[name](directory)
    content = {"queries": QUERIES, "documents": DOCUMENTS}
    (directory / "golden.json").write_text(json.dumps(content) + "\n")
    whole = {
        key: value if ".lexical" in key else value.astype(np.float32)
        for key, value in arrays.items()
    }
    np.savez_compressed(directory / "golden.npz", **whole)
    for unused in ("README.md", "special_tokens_map.json", "generation_config.json"):
        (directory / unused).unlink(missing_ok=True)
    print(name, arrays["query0"].shape, arrays["document2"].shape, arrays["scores"][0])


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make_case(name)
