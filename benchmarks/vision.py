"""Compares questions about pictures with OpenVINO GenAI on the same weights, in turns.

usage: uv run --group bench python -m benchmarks.vision DIR [--rounds 5]
           [--engines ours ours-ir genai] [--only KEY ...]

benchmarks/vision_models.py writes DIR. `ours` serves its checkpoint, `ours-ir` the IR that GenAI
has; both are `ouzel serve` in a process of its own, asked over HTTP with pictures as data URLs,
each request by a thread. GenAI is in this process and decodes the same files with Pillow:
VLMPipeline for one picture, ContinuousBatchingPipeline for eight at once, which gets all requests
before it steps, as its own `generate` does. No picture comes twice, except in `second`, another
question about the same picture.

The workload `one_16` asks about one picture and has an answer of 16 tokens. An answer of one token
is the time to the first token: the picture is decoded, resized and encoded, and the prompt is
computed. The program prints, for each engine, the medians of the rounds: pictures per second,
seconds until an answer (of eight, the median answer), and the ratios to GenAI's figures of the same
round; above 1 Ouzel is faster. The last line is JSON. A first round warms up.
"""

import argparse
import base64
import io
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import httpx
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.server import running_server

# Files of pictures, a question about each, the length of answers -> seconds until each answer.
Ask = Callable[[list[bytes], str, int], list[float]]
SIZE = (640, 480)
KV_CACHE_GIB = 1
MAX_NUM_BATCHED_TOKENS = 512
QUESTIONS = ("What is in this picture?", "Which colours has it?")
WORDS = (
    "Say it in a few words, then go on with what is in the background, from the left to the right."
)


@dataclass(frozen=True)
class Workload:
    num_pictures: int  # asked about at once, each in a request of its own
    num_tokens: int  # length of each answer


WORKLOADS = {
    "one_1": Workload(1, 1),
    "one_16": Workload(1, 16),
    "eight_1": Workload(8, 1),
    "eight_16": Workload(8, 16),
}
SECOND = "second"
ENGINES = ("ours", "ours-ir", "genai")


@dataclass(frozen=True)
class Figures:
    """The medians of the rounds."""

    pictures_per_s: float
    answer_s: float
    ratio: float | None = None  # ratio of pictures per second to GenAI's


def picture_file(seed: int) -> bytes:
    """Returns a JPEG of smooth random colours, as large as a photo's file."""
    colours = np.random.default_rng(seed).integers(0, 256, (24, 32, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(colours).resize(SIZE, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    return file.getvalue()


def pixels(file: bytes) -> NDArray[np.uint8]:
    return np.array(Image.open(io.BytesIO(file)).convert("RGB"))[None]


def ask_server(client: httpx.Client) -> Ask:
    def answer_s(file: bytes, question: str, num_tokens: int) -> float:
        before = time.perf_counter()
        url = "data:image/jpeg;base64," + base64.b64encode(file).decode()
        parts = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": f"{question} {WORDS}"},
        ]
        body = {
            "messages": [{"role": "user", "content": parts}],
            "max_tokens": num_tokens,
            "ignore_eos": True,
            "temperature": 0,
        }
        usage = client.post("/v1/chat/completions", json=body).raise_for_status().json()["usage"]
        assert usage["completion_tokens"] == num_tokens
        return time.perf_counter() - before

    def ask(files: list[bytes], question: str, num_tokens: int) -> list[float]:
        with ThreadPoolExecutor(len(files)) as threads:
            return list(threads.map(lambda file: answer_s(file, question, num_tokens), files))

    return ask


@contextmanager
def ours(model: Path, cache_dir: Path) -> Iterator[Ask]:
    options = [
        "--kv-cache-gib",
        str(KV_CACHE_GIB),
        "--max-num-batched-tokens",
        str(MAX_NUM_BATCHED_TOKENS),
    ]
    options += ["--cache-dir", str(cache_dir), "--no-store", "--log-level", "error"]
    with (
        running_server([str(model), *options]) as (url, _),
        httpx.Client(base_url=url, timeout=None) as client,
    ):
        yield ask_server(client)


@contextmanager
def genai(ir: Path) -> Iterator[Ask]:
    import openvino_genai as genai

    from ouzel.backends.openvino.library import ov

    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = KV_CACHE_GIB
    scheduler.max_num_batched_tokens = MAX_NUM_BATCHED_TOKENS
    # it has pictures' tokens in no key that one could rely on
    scheduler.enable_prefix_caching = False
    one = genai.VLMPipeline(str(ir), "CPU")
    several = genai.ContinuousBatchingPipeline(str(ir), scheduler, "CPU")

    def settings(num_tokens: int) -> genai.GenerationConfig:
        config = genai.GenerationConfig()
        config.max_new_tokens = num_tokens
        config.eos_token_id, config.stop_token_ids, config.ignore_eos = 0, {0}, True
        return config

    def ask_one(file: bytes, prompt: str, num_tokens: int) -> float:
        before = time.perf_counter()
        answer = one.generate(
            prompt, images=[ov.Tensor(pixels(file))], generation_config=settings(num_tokens)
        )
        assert answer.perf_metrics.get_num_generated_tokens() == num_tokens
        return time.perf_counter() - before

    def ask_several(files: list[bytes], prompt: str, num_tokens: int) -> list[float]:
        before = time.perf_counter()
        handles = [
            several.add_request(number, prompt, [ov.Tensor(pixels(file))], settings(num_tokens))
            for number, file in enumerate(files)
        ]
        counts, seconds = [0] * len(files), [0.0] * len(files)
        while several.has_non_finished_requests():
            several.step()
            for number, handle in enumerate(handles):
                while handle.can_read():
                    counts[number] += sum(
                        len(output.generated_ids) for output in handle.read().values()
                    )
                    seconds[number] = time.perf_counter() - before
        assert counts == [num_tokens] * len(files)
        return seconds

    def ask(files: list[bytes], question: str, num_tokens: int) -> list[float]:
        prompt = f"{question} {WORDS}"
        return (
            ask_several(files, prompt, num_tokens)
            if len(files) > 1
            else [ask_one(files[0], prompt, num_tokens)]
        )

    yield ask


def measure(
    engines: dict[str, Ask], workload: Workload, num_rounds: int, first_seed: int
) -> dict[str, Figures]:
    """Measures a workload; each round has new pictures."""
    rates: dict[str, list[float]] = {name: [] for name in engines}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for round_number in range(num_rounds + 1):
        seeds = range(first_seed + round_number * workload.num_pictures, first_seed + 10**6)
        files = [picture_file(seed) for seed in seeds[: workload.num_pictures]]
        for name in list(engines)[:: 1 if round_number % 2 else -1]:
            found = engines[name](files, QUESTIONS[0], workload.num_tokens)
            if round_number:
                rates[name].append(workload.num_pictures / max(found))
                seconds[name].append(median(found))
    return {name: figures(rates[name], seconds[name], rates.get("genai")) for name in engines}


def figures(rates: list[float], seconds: list[float], theirs: list[float] | None) -> Figures:
    ratio = None if theirs is None else round(float(np.median(np.divide(rates, theirs))), 3)
    return Figures(
        pictures_per_s=round(median(rates), 3), answer_s=round(median(seconds), 3), ratio=ratio
    )


def measure_second(engines: dict[str, Ask], num_rounds: int, first_seed: int) -> dict[str, float]:
    """Returns the time to the first token of a second question about the same picture.

    The time is a share of the first question's time.
    """
    ratios: dict[str, list[float]] = {name: [] for name in engines}
    for round_number in range(num_rounds):
        file = picture_file(first_seed + round_number)
        for name, ask in engines.items():
            [first], [second] = (ask([file], question, 1) for question in QUESTIONS)
            ratios[name].append(second / first)
    return {name: round(median(each), 3) for name, each in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument(
        "--only", nargs="+", default=[*WORKLOADS, SECOND], choices=[*WORKLOADS, SECOND]
    )
    arguments = parser.parse_args()
    checkpoint, ir, cache_dir = (arguments.models / name for name in ("checkpoint", "ir", "cache"))
    makers = {
        "ours": lambda: ours(checkpoint, cache_dir),
        "ours-ir": lambda: ours(ir, cache_dir),
        "genai": lambda: genai(ir),
    }
    result: dict[str, object] = {}
    with ExitStack() as stack:
        engines = {name: stack.enter_context(makers[name]()) for name in arguments.engines}
        for number, (key, workload) in enumerate(WORKLOADS.items()):
            if key in arguments.only:
                found = measure(
                    engines, workload, arguments.rounds, first_seed=10**6 * (number + 1)
                )
                result[key] = {name: asdict(each) for name, each in found.items()}
                print(
                    f"{key:9}",
                    *(f"{name}: {each}" for name, each in found.items()),
                    sep="  ",
                    flush=True,
                )
        if SECOND in arguments.only:
            result[SECOND] = measure_second(engines, arguments.rounds, first_seed=0)
            print(f"{SECOND:9}", result[SECOND], "of the first question's time", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
