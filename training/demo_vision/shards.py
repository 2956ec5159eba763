"""Draws pictures, asks about them, and writes both as arrays: shards of a training, or of an evaluation.

uv run python -m training.demo_vision.shards --level 3 --first 20 --shards 40 --items 2000 --output /path/for/shards
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.demo_vision.checkpoint_files import MODEL_DIRECTORY
from training.demo_vision.conversations import LEVELS, SKILLS, ItemMaker
from training.demo_vision.drawing import draw, looks_of
from training.demo_vision.exchanges import Item
from training.demo_vision.labels import labels_of
from training.demo_vision.rendering import Renderer, Tokens
from training.demo_vision.sampling import Sampler

TRUNK = 255  # in place of the number of a skill: what all conversations of an item begin with


@dataclass(slots=True)
class Shard:
    """Items one after the other: of each its pictures, its trunk, and what follows the trunk in each conversation."""

    tokens: list[Tokens] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # of each trunk and of what follows
    skills: list[int] = field(default_factory=list)  # of these
    num_parts: list[int] = field(default_factory=list)  # of each item: its trunk and what follows
    num_pictures: list[int] = field(default_factory=list)  # of each item
    grids: list[tuple[int, int]] = field(default_factory=list)  # of each picture
    pixels: list[NDArray[np.uint8]] = field(default_factory=list)
    labels: list[NDArray[np.uint8]] = field(default_factory=list)

    def add(self, item: Item, sampler: Sampler, level: int, renderer: Renderer) -> None:
        looks = looks_of(sampler, item.scenes[0], level) if item.scenes else None
        for scene in item.scenes:
            if (
                looks is None
                or sampler.chance(0.3)
                or scene.background != item.scenes[0].background
            ):
                looks = looks_of(sampler, scene, level)
            image = draw(sampler, scene, looks)
            self.grids.append(renderer.grid(image))
            self.pixels.append(renderer.pixels(image).reshape(-1))
            self.labels.append(labels_of(scene, *self.grids[-1]))
        grids = self.grids[len(self.grids) - len(item.scenes) :]
        self.num_pictures.append(len(item.scenes))
        self._add_parts(
            [renderer.tokens(each, grids) for each in item.conversations],
            [SKILLS.index(each.skill) for each in item.conversations],
            renderer.vision_end_id,
        )

    def _add_parts(
        self, conversations: list[Tokens], skills: list[int], vision_end_id: int
    ) -> None:
        begin = trunk_len(conversations, vision_end_id)
        parts = [
            _cut(conversations[0], 0, begin),
            *(_cut(each, begin, len(each.learned)) for each in conversations),
        ]
        self.tokens += parts
        self.lengths += [len(part.learned) for part in parts]
        self.skills += [TRUNK, *skills]
        self.num_parts.append(len(parts))

    def save(self, path: Path) -> None:
        arrays = {
            name: np.concatenate([getattr(part, name) for part in self.tokens])
            for name in ("token_ids", "learned", "positions", "cells")
        }
        temporary = path.with_suffix(".tmp.npz")
        np.savez(
            temporary,
            lengths=np.array(self.lengths),
            skills=np.array(self.skills, np.uint8),
            num_parts=np.array(self.num_parts),
            num_pictures=np.array(self.num_pictures),
            grids=np.array(self.grids).reshape(-1, 2),
            pixels=np.concatenate(self.pixels),
            labels=np.concatenate(self.labels),
            **arrays,
        )
        temporary.rename(path)


def _cut(tokens: Tokens, begin: int, end: int) -> Tokens:
    return Tokens(
        *(
            getattr(tokens, name)[begin:end]
            for name in ("token_ids", "learned", "positions", "cells")
        )
    )


def trunk_len(conversations: Sequence[Tokens], vision_end_id: int) -> int:
    """Returns how many tokens all begin with: up to the last picture among them, else the words in front."""
    shortest = min(int(each.learned.argmax()) for each in conversations)  # the first learned token
    ids = np.stack([each.token_ids[:shortest] for each in conversations])
    differing = np.flatnonzero((ids != ids[0]).any(axis=0))
    common = int(differing[0]) if len(differing) else shortest
    ends = np.flatnonzero(ids[0, :common] == vision_end_id)
    return int(ends[-1]) + 1 if len(ends) else min(common, 3)


def write_shard(arguments: tuple[int, argparse.Namespace]) -> str:
    number, options = arguments
    sampler = Sampler(number if not options.held_out else 10**9 + number, held_out=options.held_out)
    renderer, maker, shard = Renderer(options.model), ItemMaker(sampler, options.level), Shard()
    for _ in range(options.items):
        shard.add(maker.item(), sampler, options.level, renderer)
    path = options.output / f"shard{number:05d}.npz"
    shard.save(path)
    learned = sum(int(part.learned.sum()) for part in shard.tokens)
    return (
        f"{path.name}: {len(shard.grids)} pictures, {sum(shard.lengths)} tokens, {learned} learned"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--model", type=Path, default=MODEL_DIRECTORY, help="the checkpoint's files"
    )
    parser.add_argument("--level", type=int, choices=LEVELS, default=LEVELS[-1])
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="number (and seed) of the first shard")
    parser.add_argument("--items", type=int, default=2000, help="per shard")
    parser.add_argument(
        "--held-out", action="store_true", help="phrasings and values that training never sees"
    )
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    jobs = [(options.first + number, options) for number in range(options.shards)]
    with Pool(options.processes) as pool:
        for line in pool.imap_unordered(write_shard, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
