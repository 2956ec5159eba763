"""Reads texts aloud with kokoro-onnx; `read_aloud.py` starts it in an interpreter that has it.

A line of the input is a list of texts, which are spoken at the same time. The answer is a list: the
seconds to the first sound, the seconds to the end, and the samples in hexadecimal digits.
"""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any  # kokoro-onnx is absent where types are checked

import numpy as np
from kokoro_onnx import Kokoro

VOICE = "af_heart"


def main(model: str, voices: str) -> None:
    kokoro: Any = Kokoro(model, voices)

    async def speak(text: str) -> tuple[float, float, str]:
        begin, first_s, pieces = time.perf_counter(), 0.0, []
        async for samples, _ in kokoro.create_stream(text, voice=VOICE, lang="en-us"):
            first_s = first_s or time.perf_counter() - begin
            pieces.append((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
        return first_s, time.perf_counter() - begin, b"".join(pieces).hex()

    for line in sys.stdin:
        texts = json.loads(line)
        with ThreadPoolExecutor(max(len(texts), 1)) as pool:
            spoken = list(pool.map(lambda text: asyncio.run(speak(text)), texts))
        print(json.dumps(spoken), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
