"""Writes the directory of an embedder that sees, with the files of sentence-transformers.

The weights are the golden checkpoint `qwen3_vl`. Like Qwen3-VL-Embedding's, the tokenizer writes an
end token behind every text, and the vector is made of it.
"""

import json
from dataclasses import replace
from pathlib import Path

from tests.backends.seeing_chats import Parts
from tests.backends.seeing_families import FAMILIES

END_TOKEN = "<|endoftext|>"
INSTRUCTION = "Represent the user's input."
QUERY = "Find what shows the text."
# Each input of a vector: texts and the sizes of pictures, in their order.
INPUTS: dict[str, Parts] = {
    "text": ("The sea is blue.",),
    "spaces": ("\n  A dog, and a cat ",),
    "long": ("The cat sat on the mat; is snow cold? " * 9,),
    "picture": ((90, 40),),
    "both": ((30, 75), "What is that?"),
    "several": ("First", (60, 45), " then ", (20, 50), "\nand below\n", (57, 44)),
}
ANSWERS = ("yes", "no")
# Texts without the answers, which would be tokens of their own.
QUESTION, DOCUMENTS = "Where is the cat?", ["On the mat.", "The sea is blue.", "rain "]
MODULES = {
    "": "sentence_transformers.base.modules.transformer.Transformer",
    "1_Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "2_Normalize": "sentence_transformers.base.modules.normalize.Normalize",
}


def write_embedder(directory: Path) -> Path:
    FAMILIES["qwen3_vl"].write(directory)
    _append_end_token(directory / "tokenizer.json")
    tokenizer = directory / "tokenizer_config.json"
    _write(tokenizer, json.loads(tokenizer.read_text()) | {"pad_token": END_TOKEN})
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(MODULES.items())
    ]
    _write(directory / "modules.json", modules)
    forward = {"method": "forward", "method_output_name": "last_hidden_state"}
    reading = {
        "transformer_task": "feature-extraction",
        "modality_config": {
            "text": forward,
            "image": forward,
            "message": forward | {"format": "structured"},
        },
        "module_output_name": "token_embeddings",
        "processing_kwargs": {"chat_template": {"add_generation_prompt": True}},
    }
    _write(directory / "sentence_bert_config.json", reading)
    own = {"prompts": {"query": QUERY, "document": INSTRUCTION}, "default_prompt_name": "document"}
    _write(directory / "config_sentence_transformers.json", own)
    (directory / "1_Pooling").mkdir()
    size = json.loads((directory / "config.json").read_text())["text_config"]["hidden_size"]
    pooling = {"embedding_dimension": size, "pooling_mode": "lasttoken", "include_prompt": True}
    _write(directory / "1_Pooling" / "config.json", pooling)
    (directory / "2_Normalize").mkdir()
    return directory


def write_reranker(directory: Path) -> Path:
    """Writes the same model with tokens for its answers, as Qwen3-VL-Reranker has them."""
    return replace(FAMILIES["qwen3_vl"], line_breaks=ANSWERS).write(directory)


def _append_end_token(path: Path) -> None:
    content = json.loads(path.read_text())
    [end_id] = [each["id"] for each in content["added_tokens"] if each["content"] == END_TOKEN]
    text, end = (
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": END_TOKEN, "type_id": 0}},
    )
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [text, end],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}, end],
        "special_tokens": {END_TOKEN: {"id": END_TOKEN, "ids": [end_id], "tokens": [END_TOKEN]}},
    }
    _write(path, content)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
