"""Writes tests/backends/golden_seeing_sentences.json: what sentence-transformers makes of texts and pictures. See README.md."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from transformers import PreTrainedTokenizerFast, Qwen3VLForConditionalGeneration

from tests.backends.seeing_chats import Parts
from tests.backends.seeing_embedder import (
    ANSWERS,
    DOCUMENTS,
    INPUTS,
    QUESTION,
    write_embedder,
    write_reranker,
)
from tests.backends.seeing_families import FAMILIES
from tests.prompts.vision.pictures import picture
from training.golden.make_processors import image_processor_class

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_seeing_sentences.json"


def given(parts: Parts) -> Any:
    """Returns a text as it is, and a message with the pictures otherwise."""
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    content = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image", "image": picture(*part)}
        for part in parts
    ]
    return [{"role": "user", "content": content}]


def scores() -> list[float]:
    """Computes the scores of pairs as the card of Qwen3-VL-Reranker has it."""
    with tempfile.TemporaryDirectory() as name:
        directory = write_reranker(Path(name))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
        model = Qwen3VLForConditionalGeneration.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager"
        ).eval()
    system = (
        "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
        'Note that the answer can only be "yes" or "no".'
    )
    instruction = "Given a search query, retrieve relevant candidates that answer the query."
    yes, no = (tokenizer.convert_tokens_to_ids(answer) for answer in ANSWERS)
    found = []
    for document in DOCUMENTS:
        parts = [
            f"<Instruct>: {instruction}",
            "<Query>:",
            QUESTION,
            "\n<Document>:",
            document,
        ]
        messages = [
            {"role": "system", "content": [{"type": "text", "text": system}]},
            {"role": "user", "content": [{"type": "text", "text": part} for part in parts]},
        ]
        token_ids = tokenizer.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=True, return_tensors="pt"
        )["input_ids"]
        with torch.no_grad():
            logits = model(input_ids=token_ids).logits[0, -1]
        found.append(round(float(torch.sigmoid(logits[yes] - logits[no])), 7))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        model = SentenceTransformer(
            str(write_embedder(Path(name))),
            device="cpu",
            model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"},
        )
        # Pillow resizes as Ouzel does, torchvision does not.
        model[0].processor.image_processor = image_processor_class(
            "Qwen2VLImageProcessor"
        ).from_dict(dict(FAMILIES["qwen3_vl"].preprocessor))
        made = {
            f"{prompt}:{name}": [
                round(float(value), 7) for value in model.encode(given(parts), prompt_name=prompt)
            ]
            for prompt in ("document", "query")
            for name, parts in INPUTS.items()
        }
    made["scores"] = scores()
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(vector)}" for name, vector in made.items()
    )
    GOLDEN.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
