"""Trains the demo model on the token arrays and exports a Hugging Face directory.

python -m training.demo_model.train --data /path/of/token/arrays --work /path/for/checkpoints --minutes 55
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.demo_model.conversations import MODEL_DIRECTORY
from training.demo_model.model import ModelConfig, Qwen3

BATCH_TOKENS = 3072
SORTED_CHUNK = 2048
WARM_STEPS = 50  # also after a restart, whose momentum is empty


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised by a Newton-Schulz iteration, for weight matrices."""

    def __init__(
        self, parameters: list[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.02
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One update; matrices of one shape are orthogonalised together."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                updates = orthogonal(
                    torch.stack([self.momentum_of(p, group["momentum"]) for p in parameters])
                )
                scale = group["lr"] * 0.2 * max(shape) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["decay"]).add_(update, alpha=-scale)

    def momentum_of(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        """The Nesterov momentum after taking in the new gradient."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if "buffer" not in state:
            state["buffer"] = torch.zeros_like(parameter)
        state["buffer"].lerp_(parameter.grad, 1 - momentum)
        return parameter.grad.lerp(state["buffer"], momentum)


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """Approximately the nearest matrices with singular values near one."""
    work = matrices.bfloat16()
    tall = work.shape[-2] > work.shape[-1]
    work = work.mT if tall else work
    work = work / (work.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = work @ work.mT
        work = 3.4445 * work + (-4.775 * gram + 2.0315 * gram @ gram) @ work
    return (work.mT if tall else work).float()


class Shards:
    """Batches of conversations of similar length, from token arrays that may grow in number while training runs."""

    def __init__(self, directory: Path, seed: int, first: int) -> None:
        self.directory = directory
        self.first = first
        self.generator = np.random.default_rng(seed)
        self.uses: dict[Path, int] = {}

    def next_path(self) -> Path:
        """The newest of the least used arrays."""
        paths = [path for path in self.directory.glob("shard*.npz") if ".tmp" not in path.name]
        paths = [path for path in paths if int(path.stem[5:]) >= self.first]
        path = min(paths, key=lambda item: (self.uses.get(item, 0), item.name))
        self.uses[path] = self.uses.get(path, 0) + 1
        return path

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Padded token ids and the flags of the learned ones, without end."""
        while True:
            with np.load(self.next_path()) as arrays:
                tokens, learned, lengths = (
                    arrays["tokens"].astype(np.int64),
                    arrays["learned"],
                    arrays["lengths"],
                )
            starts = np.concatenate(([0], np.cumsum(lengths)))
            order = self.generator.permutation(len(lengths))
            for begin in range(0, len(order), SORTED_CHUNK):
                yield from self.chunk(order[begin : begin + SORTED_CHUNK], starts, tokens, learned)

    def chunk(
        self, members: np.ndarray, starts: np.ndarray, tokens: np.ndarray, learned: np.ndarray
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches out of some conversations, in random order."""
        lengths = starts[members + 1] - starts[members]
        members = members[np.argsort(lengths, kind="stable")]
        groups: list[list[int]] = [[]]
        for member in members:
            longest = int(starts[member + 1] - starts[member])
            if groups[-1] and longest * (len(groups[-1]) + 1) > BATCH_TOKENS:
                groups.append([])
            groups[-1].append(int(member))
        for position in self.generator.permutation(len(groups)):
            group = groups[position]
            width = max(int(starts[member + 1] - starts[member]) for member in group)
            ids, flags = (
                np.zeros((len(group), width), np.int64),
                np.zeros((len(group), width), bool),
            )
            for row, member in enumerate(group):
                length = int(starts[member + 1] - starts[member])
                ids[row, :length] = tokens[starts[member] : starts[member + 1]]
                flags[row, :length] = learned[starts[member] : starts[member + 1]]
            yield torch.from_numpy(ids), torch.from_numpy(flags)


def answer_loss(model: Qwen3, token_ids: Tensor, learned: Tensor) -> Tensor:
    """Mean cross-entropy of the learned tokens; only their positions go through the output head."""
    hidden, _ = model.hidden_states(token_ids[:, :-1])
    wanted = learned[:, 1:]
    return functional.cross_entropy(model.logits(hidden[wanted]).float(), token_ids[:, 1:][wanted])


def schedule(progress: float) -> float:
    """Learning-rate factor: warm-up, plateau, linear decay over the last 60 percent."""
    if progress < 0.01:
        return progress / 0.01
    return 1.0 if progress < 0.4 else max(0.02, (1 - progress) / 0.6)


def export(model: Qwen3, directory: Path) -> None:
    """`config.json` and `model.safetensors`, each replaced in one step."""
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        **asdict(model.config),
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "model_type": "qwen3",
        "rope_scaling": None,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "use_sliding_window": False,
    }
    generation = json.loads((directory / "generation_config.json").read_text(encoding="utf-8"))
    config |= {"bos_token_id": None, "eos_token_id": generation["eos_token_id"][0]}
    config |= {"pad_token_id": generation["pad_token_id"]}
    weights = {
        name: value.detach().to(torch.bfloat16).contiguous()
        for name, value in model.state_dict().items()
    }
    temporary = directory / ".model.safetensors.new"
    save_file(weights, str(temporary), metadata={"format": "pt"})
    temporary.chmod(0o644)
    temporary.rename(directory / "model.safetensors")
    temporary = directory / ".config.json.new"
    temporary.write_text(
        json.dumps(dict(sorted(config.items())), indent=2) + "\n", encoding="utf-8"
    )
    temporary.rename(directory / "config.json")


def optimizers(model: Qwen3, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW at half the rate for the embedding and the norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    steppers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=rate),
        torch.optim.AdamW(others, lr=rate / 2, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for stepper in steppers:
        for group in stepper.param_groups:
            group["initial_lr"] = group["lr"]
    return steppers


def train(options: argparse.Namespace) -> None:
    """The training loop, bounded by wall-clock time."""
    torch.manual_seed(options.seed)
    vocab_size = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json")).get_vocab_size()
    model = Qwen3(ModelConfig(vocab_size))
    if options.resume:
        model.load_state_dict(load_file(str(options.resume)))
    steppers = optimizers(model, options.rate)
    batches = Shards(options.data, options.seed, options.first).batches()
    start = last_print = last_save = time.time()
    seen, losses, step = 0, [], 0
    while (progress := (time.time() - start) / (60 * options.minutes)) < 1:
        progress = options.begin + (1 - options.begin) * progress
        token_ids, learned = next(batches)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = (
                    group["initial_lr"] * schedule(progress) * min(1.0, (step + 1) / WARM_STEPS)
                )
        with torch.autocast("cpu", torch.bfloat16):
            loss = answer_loss(model, token_ids, learned)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + token_ids.numel()
        losses.append(loss.item())
        if math.isnan(losses[-1]):
            raise SystemExit("the loss is not a number")
        if time.time() - last_print > 30:
            last_print = time.time()
            speed = seen / (last_print - start)
            done = f"{last_print - start:6.0f} s  step {step}  {seen / 1e6:.2f} M tokens  {speed:.0f}/s"
            print(f"{done}  loss {np.mean(losses):.4f}", flush=True)
            losses = []
        if time.time() - last_save > 120:
            last_save = time.time()
            save(model, options)
    save(model, options)
    print(f"done: {step} steps, {seen} tokens, {time.time() - start:.0f} s", flush=True)


def save_checkpoint(module: nn.Module, work: Path) -> None:
    """Writes the tensors in full precision, from which training can resume."""
    work.mkdir(parents=True, exist_ok=True)
    temporary = work / "checkpoint.new"
    save_file(
        {name: value.detach().clone() for name, value in module.state_dict().items()},
        str(temporary),
    )
    temporary.rename(work / "checkpoint.safetensors")


def save(model: Qwen3, options: argparse.Namespace) -> None:
    """A full-precision checkpoint to resume from, and the export."""
    save_checkpoint(model, options.work)
    export(model, options.output)


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--output", type=Path, default=MODEL_DIRECTORY, help="directory of the exported model"
    )
    parser.add_argument("--minutes", type=float, default=55)
    parser.add_argument("--rate", type=float, default=0.008)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first token array to use"
    )
    parser.add_argument(
        "--begin",
        type=float,
        default=0.0,
        help="where in its schedule a resumed run begins, 0 to 1",
    )
    parser.add_argument("--resume", type=Path, help="checkpoint.safetensors of an earlier run")
    torch.set_num_threads(2)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
