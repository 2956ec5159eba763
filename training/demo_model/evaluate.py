"""Greedy answers of the exported model to held-out phrasings and values, judged per skill.

python -m training.demo_model.evaluate --samples 200 --json /path/of/report.json
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from dataclasses import fields
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from training.demo_model.conversations import MODEL_DIRECTORY, Renderer
from training.demo_model.exchanges import Conversation
from training.demo_model.judging import ROOM, ROWS, is_right, skill_conversations
from training.demo_model.model import ModelConfig, Qwen3


def load_plain(path: Path) -> dict[str, Tensor]:
    """All tensors in float32, also those that `tools.store_int8` has stored."""
    stored = load_file(str(path))
    plain = {name: value.float() for name, value in stored.items()}
    for name in [name for name in stored if f"{name}_scale" in stored]:
        plain[name] = (plain[name] - plain.pop(f"{name}_zero_point")) * plain.pop(f"{name}_scale")
    return plain


class Answerer:
    """The exported model with its tokenizer and template."""

    def __init__(self, directory: Path) -> None:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        known = {item.name for item in fields(ModelConfig)}
        self.model = Qwen3(
            ModelConfig(**{key: value for key, value in config.items() if key in known})
        )
        self.model.load_state_dict(load_plain(directory / "model.safetensors"))
        self.model.float().eval()
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.renderer = Renderer(directory)
        self.ends = {self.tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>")}

    @torch.inference_mode()
    def generate(self, prompt: str, most: int = 600) -> str:
        """The greedy continuation of a prompt, cut after `most` tokens."""
        pending = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        caches, answer = None, []
        while len(answer) < most:
            hidden, caches = self.model.hidden_states(torch.tensor([pending]), caches)
            token_id = int(self.model.logits(hidden[:, -1]).argmax())
            if token_id in self.ends:
                break
            answer.append(token_id)
            pending = [token_id]
        return self.tokenizer.decode(answer, skip_special_tokens=False)

    def answer(self, item: Conversation) -> str:
        """What the model says as the last message of a conversation, without its thought."""
        prompt, whole = self.renderer.prompt(item), self.renderer.full(item)
        expected = len(self.tokenizer.encode(whole[len(prompt) :], add_special_tokens=False).ids)
        return self.generate(prompt, 2 * expected + ROOM).split("</think>")[-1].strip()


@functools.cache
def shared_answerer(directory: Path) -> Answerer:
    """One model per process."""
    torch.set_num_threads(1)
    return Answerer(directory)


def evaluate_row(row: tuple[str, bool], options: argparse.Namespace) -> dict[str, Any]:
    """The share of right answers of one skill."""
    skill, thinking = row
    answerer, start, wrong = shared_answerer(options.model), time.time(), []
    for item in skill_conversations(skill, thinking, options.samples, held_out=not options.seen):
        answer = answerer.answer(item)
        if not is_right(item, answer):
            wrong.append((item, answer))
    for item, answer in wrong[: options.show]:
        prompt = answerer.renderer.prompt(item)[-420:]
        print(f"--- {skill}\n{prompt}\n>>> got\n{answer}\n>>> wanted\n{item.messages[-1]}")
    accuracy = round(1 - len(wrong) / options.samples, 4)
    name = f"{skill}{' (thinking)' if thinking else ''}"
    print(
        f"{name:28} {accuracy:7.1%}  of {options.samples}  ({time.time() - start:.0f} s)",
        flush=True,
    )
    return {"skill": skill, "thinking": thinking, "samples": options.samples, "accuracy": accuracy}


def main() -> None:
    """Evaluate, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL_DIRECTORY)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--seen", action="store_true", help="use the phrasings and values of the training side"
    )
    parser.add_argument("--show", type=int, default=0, help="wrong answers to print per skill")
    parser.add_argument("--only", help="one skill")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in (None, row[0])]
    with Pool(options.processes) as pool:
        report = pool.map(functools.partial(evaluate_row, options=options), rows, chunksize=1)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
