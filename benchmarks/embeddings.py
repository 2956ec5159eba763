"""Compares embeddings per second with sentence-transformers, in turns, on random checkpoints.

    uv run python -m benchmarks.embeddings make DIRECTORY --torch-python PYTHON
    uv run python -m benchmarks.embeddings run DIRECTORY --torch-python PYTHON
        [--rounds 5] [--share 1]

PYTHON is an interpreter with torch, transformers and sentence-transformers. Each round asks every
engine once, in a process of its own, in turn; the figures are medians. Ouzel is measured through
its HTTP API, JSON and tokenizer included.
"""

import argparse
import base64
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SHAPES = {"minilm-l6": (384, 6, 12, 1536), "bge-base": (768, 12, 12, 3072)}
NUM_TEXTS = {"minilm-l6": 512, "bge-base": 96}
PRECISIONS = {"f32": ("f32", "f32"), "bf16": ("bf16", "bf16"), "int8": ("int8", "int8")}

_MAKE = """
import sys, torch
from pathlib import Path
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import BertConfig, BertModel
from training.golden.make_sentences import of_bert
directory, size, layers, heads, inner = Path(sys.argv[1]), *map(int, sys.argv[2:])
torch.manual_seed(0)
tokenizer = of_bert()
config = BertConfig(vocab_size=30522, hidden_size=size, num_hidden_layers=layers,
                    num_attention_heads=heads, intermediate_size=inner)
BertModel(config).save_pretrained(directory)
tokenizer.model_max_length = 512
tokenizer.save_pretrained(directory)
modules = [Transformer(str(directory)), Pooling(size, "mean"), Normalize()]
model = SentenceTransformer(modules=modules)
model.save(str(directory), create_model_card=False)
"""
_TORCH = """
import json, sys, time, torch
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", backend=sys.argv[3])
texts = json.load(open(sys.argv[2]))
model.encode(texts[:32], batch_size=32)
print("ready", flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts, batch_size=32)
    print(len(texts) / (time.perf_counter() - begin), flush=True)
"""


def make_texts(kind: str, number: int) -> list[str]:
    """Returns texts of words of the tokenizer: 30 words each, or 4 to 250 as documents have."""
    sentence = "the cat sat on mat sun is hot ice cold rain wet snow river sea blue red"
    words = sentence.split()
    lens = (
        [30] * number
        if kind == "equal"
        else [int(4 + 246 * ((place * 0.618034) % 1) ** 3) for place in range(number)]
    )
    return [
        " ".join(words[(place + step) % len(words)] for step in range(length))
        for place, length in enumerate(lens)
    ]


def make(directory: Path, python: str) -> None:
    for name, shape in SHAPES.items():
        subprocess.run([python, "-c", _MAKE, str(directory / name), *map(str, shape)], check=True)


@contextmanager
def server(model: Path, precision: str, cache_dir: Path) -> Iterator[str]:
    weights, inference = PRECISIONS[precision]
    command = [
        sys.executable,
        "-m",
        "ouzel",
        "serve",
        str(model),
        "--port",
        "0",
        "--no-store",
        "--weights",
        weights,
    ]
    command += ["--precision", inference, "--cache-dir", str(cache_dir), "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(
                found[1]
                for line in process.stdout
                if (found := re.search(r"at (http\S+)/v1", line))
            )
        finally:
            process.terminate()


def ask(url: str, texts: list[str]) -> tuple[float, list[bytes]]:
    body = json.dumps({"input": texts, "encoding_format": "base64"}).encode()
    request = urllib.request.Request(
        f"{url}/v1/embeddings", body, {"Content-Type": "application/json"}
    )
    begin = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        entries = json.load(answer)["data"]
    return len(texts) / (time.perf_counter() - begin), [
        base64.b64decode(entry["embedding"]) for entry in entries
    ]


@contextmanager
def reference(
    python: str, model: Path, texts_file: Path, backend: str = "torch"
) -> Iterator[subprocess.Popen[str]]:
    """Starts sentence-transformers, which encodes the texts whenever it is asked."""
    command = [python, "-c", _TORCH, str(model), str(texts_file), backend]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.terminate()


def ask_reference(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def run(directory: Path, python: str, rounds: int, share: float) -> None:
    for name in SHAPES:
        for kind in ("equal", "mixed"):
            texts = make_texts(kind, max(int(share * NUM_TEXTS[name]), 1))
            texts_file = directory / f"texts-{kind}.json"
            texts_file.write_text(json.dumps(texts))
            with ExitStack() as stack:
                torch = stack.enter_context(reference(python, directory / name, texts_file))
                servers = {
                    precision: stack.enter_context(
                        server(directory / name, precision, directory / "cache")
                    )
                    for precision in PRECISIONS
                }
                for url in servers.values():
                    ask(url, texts)
                rates: dict[str, list[float]] = {each: [] for each in ("torch", *servers)}
                for _ in range(rounds):
                    rates["torch"].append(ask_reference(torch))
                    for precision, url in servers.items():
                        rates[precision].append(ask(url, texts)[0])
            shares = {
                precision: statistics.median(
                    own / theirs
                    for own, theirs in zip(rates[precision], rates["torch"], strict=True)
                )
                for precision in servers
            }
            told = " ".join(
                f"{each} {statistics.median(values):.0f}/s" for each, values in rates.items()
            )
            ratios = " ".join(f"{each} {share:.2f}" for each, share in shares.items())
            sys.stdout.write(f"{name} {kind}: {told}; of torch's: {ratios}\n")
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["make", "run"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the texts, where the machine is slow"
    )
    given = parser.parse_args()
    if given.command == "make":
        make(given.directory, given.torch_python)
    else:
        run(given.directory, given.torch_python, given.rounds, given.share)


if __name__ == "__main__":
    main()
