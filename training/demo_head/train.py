"""Trains the demo model's drafting head on the token arrays and exports it as published heads are stored.

python -m training.demo_head.train --data /path/of/token/arrays --work /path/for/checkpoints --minutes 35
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from training.demo_head.model import DraftHead, HeadConfig, Unrolling, read_target
from training.demo_model.conversations import MODEL_DIRECTORY
from training.demo_model.evaluate import Answerer
from training.demo_model.model import Qwen3
from training.demo_model.train import Muon, Shards, save_checkpoint, schedule

HEAD_DIRECTORY = Path(__file__).resolve().parents[2] / "tests" / "backends" / "demo_head"
STEP_WEIGHT = 0.8  # each further step of a draft counts less: it is reached less often
WARM_STEPS = 50


def frequent_ids(data: Path, vocab_size: int, count: int) -> tuple[Tensor, float]:
    """The most frequent tokens of the answers in ascending order, and the share of the answers that they make up."""
    counts = np.zeros(vocab_size, np.int64)
    for path in sorted(data.glob("shard*.npz")):
        with np.load(path) as arrays:
            answers = arrays["tokens"][arrays["learned"] > 0]
        counts += np.bincount(answers, minlength=vocab_size)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:count])
    return torch.from_numpy(chosen), float(counts[chosen].sum() / counts.sum())


def draft_rows(learned: Tensor) -> tuple[Tensor, Tensor]:
    """The positions before an answer's tokens, where a server drafts: padded row numbers, and which are no padding."""
    starts = torch.zeros_like(learned)
    starts[:, :-2] = learned[:, 1:-1] & learned[:, 2:]
    most = max(1, int(starts.sum(1).max()))
    order = torch.argsort(~starts, dim=1, stable=True)[:, :most]
    return order, starts.gather(1, order)


def draft_loss(
    head: DraftHead, target: Qwen3, token_ids: Tensor, learned: Tensor, steps: int
) -> tuple[Tensor, list[tuple[int, int]]]:
    """The weighted cross-entropies against the target's distributions, and for each step its hits and its rows."""
    last_place = token_ids.shape[1] - 1
    with torch.no_grad():
        streams, last = read_target(target, token_ids, head.config.layer_ids)
        embeddings = target.model.embed_tokens(token_ids).to(streams.dtype)
        answered = learned.roll(-1, 1)  # where the target's next token belongs to an answer
        answered[:, -1] = False
        places = answered.flatten().cumsum(0).view_as(answered) - 1
        scores = target.logits(last[answered]).float()
        wanted = scores.argmax(-1)
        soft = scores[:, head.t2d].softmax(-1)
    rows, valid = draft_rows(learned)
    unrolling = Unrolling(head, streams, embeddings.roll(-1, 1), rows, steps)
    hidden = unrolling.first()
    total, hits = torch.zeros(()), []
    for step in range(steps):
        at = (rows + 1 + step).clamp(max=last_place)
        if step:
            next_embeddings = embeddings[torch.arange(len(rows))[:, None], at]
            hidden = unrolling.later(next_embeddings, hidden)
        valid = valid & answered.gather(1, at) & (rows + 1 + step < last_place)
        judged = places.gather(1, at)[valid]
        logits = head.logits(hidden[valid]).float()
        known = head.t2d[wanted[judged]]
        entropy = logits.logsumexp(-1) - (soft[judged] * logits).sum(-1)
        total = total + STEP_WEIGHT**step * entropy[known].mean()
        right = head.target_ids(logits.argmax(-1)) == wanted[judged]
        hits.append((int(right.sum()), len(judged)))
    return total, hits


def export(head: DraftHead, directory: Path) -> None:
    """`config.json` and `model.safetensors`, each replaced in one step."""
    directory.mkdir(parents=True, exist_ok=True)
    sizes = asdict(head.config)
    layer_ids = sizes.pop("layer_ids")
    config = {
        **sizes,
        "architectures": ["LlamaForCausalLMEagle3"],
        "attention_bias": False,
        "eagle_aux_hidden_state_layer_ids": list(layer_ids),
        "eagle_config": {  # programs that read this section count layers by their outputs
            "eagle_aux_hidden_state_layer_ids": [number - 1 for number in layer_ids],
            "use_aux_hidden_state": True,
        },
        "hidden_act": "silu",
        "mlp_bias": False,
        "model_type": "llama",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
    weights = {
        name: value.detach().to(torch.bfloat16) if value.is_floating_point() else value.detach()
        for name, value in head.state_dict().items()
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


def optimizers(head: DraftHead, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices below the output, AdamW at half the rate for the output and the norms."""
    named = list(head.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and name != "lm_head.weight"]
    others = [p for name, p in named if p.ndim != 2 or name == "lm_head.weight"]
    steppers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=rate),
        torch.optim.AdamW(others, lr=rate / 2, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for stepper in steppers:
        for group in stepper.param_groups:
            group["initial_lr"] = group["lr"]
    return steppers


def new_head(target: Qwen3, options: argparse.Namespace) -> DraftHead:
    """A head whose output begins as the target's."""
    sizes = {
        name: value for name, value in asdict(target.config).items() if name != "num_hidden_layers"
    }
    config = HeadConfig(
        **sizes, draft_vocab_size=options.draft_vocab, layer_ids=tuple(options.layers)
    )
    ids, share = frequent_ids(options.data, config.vocab_size, config.draft_vocab_size)
    print(f"the draft vocabulary makes up {share:.2%} of the answers", flush=True)
    head = DraftHead(config, ids)
    with torch.no_grad():
        head.lm_head.weight.copy_(target.model.embed_tokens.weight[ids])
        head.norm.weight.copy_(target.model.norm.weight)
    if options.resume:
        head.load_state_dict(load_file(str(options.resume)))
    return head


def train(options: argparse.Namespace) -> None:
    """The training loop, bounded by wall-clock time."""
    torch.manual_seed(options.seed)
    target = Answerer(MODEL_DIRECTORY).model
    target.requires_grad_(False)
    head = new_head(target, options)
    steppers = optimizers(head, options.rate)
    batches = Shards(options.data, options.seed, 0).batches()
    start = last_print = last_save = time.time()
    seen, losses, step = 0, [], 0
    hits = np.zeros((options.steps, 2))
    while (progress := (time.time() - start) / (60 * options.minutes)) < 1:
        progress = options.begin + (1 - options.begin) * progress
        token_ids, learned = next(batches)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = (
                    group["initial_lr"] * schedule(progress) * min(1.0, (step + 1) / WARM_STEPS)
                )
        with torch.autocast("cpu", torch.bfloat16):
            loss, batch_hits = draft_loss(head, target, token_ids, learned, options.steps)
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + token_ids.numel()
        losses.append(loss.item())
        hits += batch_hits
        if math.isnan(losses[-1]):
            raise SystemExit("the loss is not a number")
        if time.time() - last_print > 30:
            last_print = time.time()
            done = f"{last_print - start:6.0f} s  step {step}  {seen / 1e6:.2f} M tokens"
            agreement = " ".join(f"{right / max(1, of):.3f}" for right, of in hits)
            print(f"{done}  loss {np.mean(losses):.4f}  agreement {agreement}", flush=True)
            losses, hits = [], np.zeros((options.steps, 2))
        if time.time() - last_save > 120:
            last_save = time.time()
            save(head, options)
    save(head, options)
    print(f"done: {step} steps, {seen} tokens, {time.time() - start:.0f} s", flush=True)


def save(head: DraftHead, options: argparse.Namespace) -> None:
    """A full-precision checkpoint to resume from, and the export."""
    save_checkpoint(head, options.work)
    export(head, options.output)


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=HEAD_DIRECTORY)
    parser.add_argument("--minutes", type=float, default=35)
    parser.add_argument("--rate", type=float, default=0.008)
    parser.add_argument("--steps", type=int, default=6, help="length of the drafts in training")
    parser.add_argument(
        "--layers",
        type=int,
        nargs=3,
        default=[1, 3, 4],
        help="layers whose inputs are read, from 1",
    )
    parser.add_argument("--draft-vocab", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=float, default=0.0, help="where in its schedule, 0 to 1")
    parser.add_argument("--resume", type=Path, help="checkpoint.safetensors of an earlier run")
    torch.set_num_threads(1)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
