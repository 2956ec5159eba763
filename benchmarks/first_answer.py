"""Times `ouzel serve` from the command to the first answer, in turns for several checkouts.

    uv run python -m benchmarks.first_answer . ../other-checkout [--rounds 7]

Each checkout needs its own `.venv` (`uv sync`). A first round fills the caches. The other checkouts
are compared with the first one.
"""

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

QUESTION = {"model": "ouzel-demo", "messages": [{"role": "user", "content": "Hello!"}]}


def first_answer_s(checkout: Path, cache_dir: str) -> float:
    command = [
        str(checkout / ".venv/bin/python"),
        "-m",
        "ouzel",
        "serve",
        "--port",
        "0",
        "--no-store",
    ]
    started = time.perf_counter()
    with subprocess.Popen(
        [*command, "--log-level", "error", "--cache-dir", cache_dir],
        stdout=subprocess.PIPE,
        text=True,
        cwd=checkout,
    ) as process:
        assert process.stdout is not None
        announcement = ""
        while "curl " not in announcement:
            line = process.stdout.readline()
            assert line, f"the server of {checkout} ended"
            announcement += line
        url = re.search(r"at (https?://\S+/v1)", announcement)
        assert url is not None
        httpx.post(f"{url[1]}/chat/completions", json=QUESTION, timeout=None).raise_for_status()
        duration_s = time.perf_counter() - started
        process.terminate()
    return duration_s


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    caches = {checkout.resolve(): tempfile.mkdtemp() for checkout in arguments.checkouts}
    for checkout, cache_dir in caches.items():
        first_answer_s(checkout, cache_dir)
    times: dict[Path, list[float]] = {checkout: [] for checkout in caches}
    for _ in range(arguments.rounds):
        for checkout, cache_dir in caches.items():
            times[checkout].append(first_answer_s(checkout, cache_dir))
    medians = {checkout: statistics.median(each) for checkout, each in times.items()}
    reference = next(iter(medians.values()))
    for checkout, median in medians.items():
        print(f"{checkout}: {median:.2f} s, {median / reference:.2f} of the first")


if __name__ == "__main__":
    main()
