"""Trains the model on shards and exports its weights.

python -m training.demo_vision.train --data /path/of/shards --held-out /path/of/shards --work /path/for/checkpoints \
    --minutes 60

It runs where torch is. The shards' level rises with the time: LEVEL_ENDS. `--resume` goes on from the checkpoint.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from training.demo_vision.batches import Batch, LoadedShard
from training.demo_vision.checkpoint_files import MODEL_DIRECTORY
from training.demo_vision.export import export
from training.demo_vision.losses import LabelHeads, Tally, scores_of
from training.demo_vision.model import Qwen3Vl
from training.demo_vision.optimizers import optimizers
from training.demo_vision.sizes import sizes_of

LEVEL_ENDS = {
    1: 0.03,
    2: 0.2,
    3: 1.0,
}  # when the shards of a level are done with, as a share of the time
WARM_STEPS = 50
EXAMINED_BATCHES = 12
EXAMINED_ITEMS = 32


class Shards:
    """The least used shards of a level come first. There may come more while training runs."""

    def __init__(self, directory: Path, seed: int, num_items: int) -> None:
        self._directory = directory
        self._generator = np.random.default_rng(seed)
        self._num_items = num_items
        self._uses: dict[Path, int] = {}

    def batches(self, level: int) -> Iterator[Batch]:
        """Gives those of one shard."""
        paths = [
            path
            for path in (self._directory / f"level{level}").glob("shard*.npz")
            if ".tmp" not in path.name
        ]
        path = min(paths, key=lambda each: (self._uses.get(each, 0), each.name))
        self._uses[path] = self._uses.get(path, 0) + 1
        yield from LoadedShard(path).batches(self._num_items, self._generator)


@dataclass(slots=True)
class Progress:
    """Survives in the checkpoint."""

    num_steps: int = 0
    elapsed_s: float = 0.0
    num_pictures: int = 0
    num_tokens: int = 0


class Training:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        config = json.loads((options.output / "config.json").read_text(encoding="utf-8"))
        self.model = Qwen3Vl(sizes_of(config))
        self.heads = LabelHeads(self.model.sizes.text.hidden_size)
        self.all = nn.ModuleDict({"model": self.model, "heads": self.heads})
        self.optimizers = optimizers(self.all, options.rate)
        self.rates = [[group["lr"] for group in each.param_groups] for each in self.optimizers]
        self.progress = Progress()
        self.shards = Shards(options.data, options.seed, options.items)
        self.checkpoint = options.work / "checkpoint.pt"
        if options.resume:
            self._load()

    @property
    def share(self) -> float:
        """Returns how much of the time is over, from 0 to 1."""
        return self.progress.elapsed_s / (60 * float(self.options.minutes))

    def run(self) -> None:
        self.options.work.mkdir(parents=True, exist_ok=True)
        num_parameters = sum(parameter.numel() for parameter in self.model.parameters())
        print(f"{num_parameters} parameters", flush=True)
        losses: list[tuple[float, float]] = []
        printed_at = saved_at = self.progress.elapsed_s
        for batch in self._batches():
            begins_at = time.monotonic()
            losses.append(self._step(batch))
            self.progress.elapsed_s += time.monotonic() - begins_at
            if self.progress.elapsed_s - printed_at > self.options.print_s:
                printed_at = self.progress.elapsed_s
                self._print(losses)
                losses = []
            if self.progress.elapsed_s - saved_at > self.options.save_s:
                saved_at = self.progress.elapsed_s
                self._save()
                self.examine()
        self._save()
        self.examine(4 * EXAMINED_BATCHES)

    def _batches(self) -> Iterator[Batch]:
        while self.share < 1:
            level = next(level for level, end in LEVEL_ENDS.items() if self.share < end)
            for batch in self.shards.batches(level):
                if self.share >= min(1, LEVEL_ENDS[level]):
                    break
                yield batch

    def _step(self, batch: Batch) -> tuple[float, float]:
        """Returns the losses of answers and labels."""
        factor = schedule(self.share) * min(1.0, (self.progress.num_steps + 1) / WARM_STEPS)
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
        answers = torch.zeros(())
        with torch.autocast("cpu", torch.bfloat16, enabled=not self.options.float32):
            features = self.model.features(batch.pictures)
            labels = self.heads(features, batch.labels) if batch.pictures else torch.zeros(())
            if self.share >= self.options.sight:
                answers = scores_of(self.model, batch, features).losses.mean()
        loss = answers + self.options.label_weight * labels
        if not math.isfinite(loss.item()):
            raise SystemExit("the loss is not a number")
        if loss.requires_grad:
            loss.backward()
            nn.utils.clip_grad_norm_(self.all.parameters(), 1.0)
            for optimizer in self.optimizers:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        self.progress.num_steps += 1
        self.progress.num_pictures += sum(len(each.pixels) for each in batch.pictures)
        self.progress.num_tokens += len(batch.token_ids)
        return answers.item(), labels.item()

    def _print(self, losses: list[tuple[float, float]]) -> None:
        answers, labels = np.mean(losses, axis=0)
        done, each = self.progress, self.progress.elapsed_s
        print(
            f"{each:6.0f} s  step {done.num_steps}  {done.num_pictures} pictures ({done.num_pictures / each:.0f}/s)  "
            f"{done.num_tokens / 1e6:.2f} M tokens  answers {answers:.4f}  labels {labels:.3f}",
            flush=True,
        )

    @torch.no_grad()
    def examine(self, num_batches: int = EXAMINED_BATCHES) -> None:
        """Prints which share of held-out conversations is answered right, by skill."""
        tally, generator = Tally(), np.random.default_rng(0)
        for path in sorted(self.options.held_out.glob("shard*.npz"))[:1]:
            for number, batch in enumerate(LoadedShard(path).batches(EXAMINED_ITEMS, generator)):
                if number == num_batches:
                    break
                with torch.autocast("cpu", torch.bfloat16, enabled=not self.options.float32):
                    tally.add(
                        batch, scores_of(self.model, batch, self.model.features(batch.pictures))
                    )
        shares = tally.shares()
        line = "  ".join(f"{skill} {share:.0%}" for skill, share in shares.items())
        print(f"held out at {self.share:.0%}: loss {np.mean(tally.losses):.3f}  {line}", flush=True)
        with (self.options.work / "curve.jsonl").open("a", encoding="utf-8") as file:
            loss = float(np.mean(tally.losses))
            file.write(
                json.dumps({"s": round(self.progress.elapsed_s), "loss": loss, **shares}) + "\n"
            )

    def _save(self) -> None:
        temporary = self.checkpoint.with_suffix(".new")
        state = {
            "modules": self.all.state_dict(),
            "optimizers": [each.state_dict() for each in self.optimizers],
            "progress": {name: getattr(self.progress, name) for name in Progress.__slots__},
        }
        torch.save(state, temporary)
        temporary.rename(self.checkpoint)
        export(self.model, self.options.output)

    def _load(self) -> None:
        state = torch.load(self.checkpoint, weights_only=True)
        self.all.load_state_dict(state["modules"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])
        self.shards = Shards(
            self.options.data, self.options.seed + self.progress.num_steps, self.options.items
        )


def schedule(share: float) -> float:
    """Returns the factor of the learning rate: a short rise, a plateau, and a straight way down."""
    if share < 0.01:
        return 0.1 + 90 * share
    return 1.0 if share < 0.4 else max(0.02, (1 - share) / 0.6)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="has the folders level1, level2 and level3"
    )
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--output", type=Path, default=MODEL_DIRECTORY, help="the checkpoint's files"
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=0.0015)
    parser.add_argument("--items", type=int, default=24, help="of a batch")
    parser.add_argument(
        "--sight",
        type=float,
        default=0.2,
        help="share of the time in which only the encoder learns",
    )
    parser.add_argument("--label-weight", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--print-s", type=float, default=30)
    parser.add_argument("--save-s", type=float, default=180)
    parser.add_argument("--float32", action="store_true", help="without bfloat16")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    Training(options).run()


if __name__ == "__main__":
    main()
