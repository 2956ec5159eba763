"""Greedy answers of the checkpoint as Ouzel serves it, judged by skill; prints the table of the model's card.

uv run python -m training.demo_vision.evaluate --samples 200 [--weights bf16] [--show 5] [--json FILE]

"Held out" asks with phrasings, numbers, words and pairs of a colour and a shape that training never had; "seen" with
those it had, about new pictures; "not looking" asks what "held out" asks, but shows other pictures.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.core import EngineCore
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest, ImageInput
from training.demo_vision.checkpoint_files import MODEL_DIRECTORY
from training.demo_vision.judging import Asked, asked_by_skill, is_right, swapped
from training.demo_vision.rendering import Renderer

NUM_QUEUED = 64  # answers in the making at a time
ROOM = 40  # tokens that an answer may have beyond twice the expected one's

Columns = dict[str, dict[str, float]]  # by their heads; shares by skill


class Examiner:
    def __init__(self, engine: EngineCore, renderer: Renderer) -> None:
        self._engine = engine
        self._renderer = renderer
        self._ends = tuple(renderer.token_id(token) for token in ("<|im_end|>", "<|endoftext|>"))
        self._num_requests = 0

    def answers(self, asked: list[Asked]) -> list[str]:
        requests = [self._request(each) for each in asked]
        pending = iter(requests)
        found: dict[str, list[int]] = {request.request_id: [] for request in requests}
        num_open = num_finished = 0
        while num_finished < len(requests):
            while num_open < NUM_QUEUED and (request := next(pending, None)) is not None:
                self._engine.add(request)
                num_open += 1
            for output in self._engine.step():
                assert output.error is None, output.error
                found[output.request_id] += output.token_ids
                num_finished += output.finish_reason is not None
                num_open -= output.finish_reason is not None
        texts = (
            [token_id for token_id in ids if token_id not in self._ends] for ids in found.values()
        )
        return [self._renderer.tokenizer.decode(ids, skip_special_tokens=False) for ids in texts]

    def _request(self, asked: Asked) -> EngineRequest:
        renderer, expected = self._renderer, str(asked.conversation.messages[-1]["content"])
        prompt_ids = renderer.prompt(asked.conversation, asked.grids)
        self._num_requests += 1
        max_tokens = 2 * len(renderer.tokenizer.encode(expected).ids) + ROOM
        return EngineRequest(
            request_id=str(self._num_requests),
            prompt_token_ids=prompt_ids,
            params=SamplingParams(max_tokens=max_tokens, temperature=0.0),
            eos_token_ids=self._ends,
            images=self._images(asked, prompt_ids),
        )

    def _images(self, asked: Asked, prompt_ids: list[int]) -> tuple[ImageInput, ...]:
        places = np.flatnonzero(np.array(prompt_ids) == self._renderer.image_id)
        normalisation = self._renderer.processor.normalisation
        made, begin = [], 0
        for pixels, (rows, columns) in zip(asked.pictures, asked.grids, strict=True):
            image = ImageInput(
                digest=blake2b(pixels.tobytes(), digest_size=16).digest(),
                runs=((int(places[begin]), rows * columns),),
                shape=(1, *pixels.shape[:2]),
                pixels=pixels.tobytes(),
                rescale=normalisation.rescale,
                mean=normalisation.mean,
                std=normalisation.std,
                size=(pixels.shape[0], pixels.shape[1]),
                position_grid=(1, rows, columns),
            )
            made.append(image)
            begin += rows * columns
        return tuple(made)


def shares(
    examiner: Examiner, by_skill: dict[str, list[Asked]], num_shown: int
) -> dict[str, float]:
    found = {}
    for skill, asked in by_skill.items():
        answers = examiner.answers(asked)
        right = [
            is_right(each.conversation, answer) for each, answer in zip(asked, answers, strict=True)
        ]
        wrong = [
            pair
            for pair, is_good in zip(zip(asked, answers, strict=True), right, strict=True)
            if not is_good
        ]
        for each, answer in wrong[:num_shown]:
            *_, question, expected = each.conversation.messages
            print(
                f"--- {skill}\n{question['content']}\n>>> got\n{answer}\n>>> wanted\n{expected['content']}"
            )
        found[skill] = round(float(np.mean(right)), 4)
        print(f"{skill:14} {found[skill]:7.1%} of {len(asked)}", flush=True)
    return found


def columns(examiner: Examiner, renderer: Renderer, options: argparse.Namespace) -> Columns:
    held_out = asked_by_skill(renderer, options.samples, held_out=True)
    seen = asked_by_skill(renderer, options.samples, held_out=False)
    not_looking = {
        skill: swapped(asked) for skill, asked in held_out.items() if skill != "small talk"
    }
    sides: dict[str, Callable[[], dict[str, float]]] = {
        "held out": lambda: shares(examiner, held_out, options.show),
        "seen": lambda: shares(examiner, seen, 0),
        "not looking": lambda: shares(examiner, not_looking, 0),
    }
    return {head: sides[head]() for head in options.columns}


def print_table(found: Columns) -> None:
    print("\n| skill | " + " | ".join(found) + " |\n| --- |" + " ---: |" * len(found))
    for skill in next(iter(found.values())):
        row = [f"{column[skill]:.0%}" if skill in column else "-" for column in found.values()]
        print(f"| {skill} | " + " | ".join(row) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=MODEL_DIRECTORY)
    parser.add_argument("--samples", type=int, default=200, help="conversations of each skill")
    parser.add_argument("--columns", nargs="+", default=["held out", "seen", "not looking"])
    parser.add_argument("--weights", default="auto", help="as of `ouzel serve`")
    parser.add_argument("--precision", default="auto", help="as of `ouzel serve`")
    parser.add_argument("--show", type=int, default=0, help="wrong answers to print per skill")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ouzel-demo-vision-") as cache_dir:
        model = {"model": str(options.model), "weights": options.weights, "cache_dir": cache_dir}
        engine = {"precision": options.precision, "kv_cache_gib": 0.25, "max_num_seqs": 32}
        runner = create_runner(
            msgspec.convert(model, ModelConfig), msgspec.convert(engine, EngineConfig)
        )
        renderer = Renderer(options.model)
        found = columns(Examiner(EngineCore(runner), renderer), renderer, options)
        runner.close()
    print_table(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
