"""Writes tests/backends/golden_seeing_videos.json: what transformers makes of chats with videos. See README.md."""

import json
import re
import sys
import tempfile
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Resampling
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.models.internvl.video_processing_internvl import InternVLVideoProcessor
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
from transformers.video_utils import VideoMetadata

from tests.backends.seeing_chats import shortened
from tests.backends.seeing_families import FAMILIES
from tests.backends.seeing_videos import (
    FAMILIES_WITH_VIDEOS,
    FEATURE_TOKENS,
    NUM_GREEDY,
    NUM_LAST,
    VIDEO_CHATS,
    Film,
    Parts,
)
from tests.prompts.vision.pictures import picture
from training.golden.make_seeing import SMALLEST_GAP, processor_of

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_seeing_videos.json"
PROCESSORS = {
    each.__name__: each
    for each in (InternVLVideoProcessor, Qwen2VLVideoProcessor, Qwen3VLVideoProcessor)
}


def shown(film: Film, videos: Any) -> tuple[Any, dict[str, object]]:
    """Returns the frames that are shown, and what the reference is to know of them."""
    facts: dict[str, Any] = {"total_num_frames": film.num_frames, "fps": film.fps}
    numbers = list(range(film.num_frames))
    if film.is_file:
        sampled = videos.sample_frames(metadata=VideoMetadata(**facts), fps=2)
        numbers = [int(each) for each in sampled]
    frames = film.frames()
    if isinstance(
        videos, InternVLVideoProcessor
    ):  # whose own resizing differs by a grey level here and there
        size = (videos.size["width"], videos.size["height"])
        frames = [frame.resize(size, Resampling.BICUBIC) for frame in frames]
    pixels = np.stack([np.asarray(frame) for frame in frames])
    return pixels[numbers], facts | {"frames_indices": numbers}


def inputs_of(processor: Any, text: str, parts: Parts) -> Any:
    films = [shown(part, processor.video_processor) for part in parts if isinstance(part, Film)]
    pictures = [picture(*part) for part in parts if isinstance(part, tuple)]
    return processor(
        text=[text],
        images=pictures or None,
        videos=[pixels for pixels, _ in films],
        videos_kwargs={"do_sample_frames": False, "video_metadata": [facts for _, facts in films]},
        text_kwargs={"add_special_tokens": False},
        return_tensors="pt",
    )


def golden_chat(processor: Any, model: Any, parts: Parts) -> dict[str, object]:
    tokenizer = processor.tokenizer
    content = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "video" if isinstance(part, Film) else "image"}
        for part in parts
    ]
    messages = [{"role": "user", "content": content}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    inputs = dict(inputs_of(processor, text, parts))
    token_ids = prompt_ids = inputs.pop("input_ids")[0].tolist()
    types = inputs.pop("mm_token_type_ids", torch.zeros(1, 0))[0].tolist()
    del inputs["attention_mask"]
    inputs.pop("video_metadata", None)
    greedy, first = list[int](), None
    with torch.no_grad():
        for _ in range(NUM_GREEDY):
            given = {"input_ids": torch.tensor([token_ids])}
            if types:
                further = [0] * (len(token_ids) - len(types))
                given["mm_token_type_ids"] = torch.tensor([types + further])
            logprobs = torch.log_softmax(
                model(**given, **inputs, use_cache=False).logits[0].double(), dim=-1
            )
            first = logprobs if first is None else first
            best = logprobs[-1].topk(2).values.tolist()
            assert best[0] - best[1] > SMALLEST_GAP
            greedy.append(int(logprobs[-1].argmax()))
            token_ids = [*token_ids, greedy[-1]]
    assert first is not None
    positions = range(len(prompt_ids) - NUM_LAST - 1, len(prompt_ids) - 1)
    return {
        "text": reduce(shortened, FEATURE_TOKENS, tokenizer.decode(prompt_ids)),
        "num_tokens": len(prompt_ids),
        "logprobs": [
            round(float(first[position, prompt_ids[position + 1]]), 6) for position in positions
        ],
        "greedy": greedy,
    }


def golden(name: str) -> dict[str, object]:
    family = FAMILIES[name]
    with tempfile.TemporaryDirectory() as directory:
        family.write(Path(directory))
        processor = processor_of(family, PreTrainedTokenizerFast.from_pretrained(directory))
        settings = {
            key: value for key, value in family.videos.items() if key != "video_processor_type"
        }
        processor.video_processor = PROCESSORS[str(family.videos["video_processor_type"])](
            **settings
        )
        model = AutoModelForImageTextToText.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        return {chat: golden_chat(processor, model, parts) for chat, parts in VIDEO_CHATS.items()}


def main() -> None:
    known = json.loads(GOLDEN.read_text()) if sys.argv[1:] else {}
    known |= {name: golden(name) for name in sys.argv[1:] or FAMILIES_WITH_VIDEOS}
    made = {name: known[name] for name in FAMILIES_WITH_VIDEOS}
    text = re.sub(
        r"\[[^\[\]]+\]",
        lambda numbers: re.sub(r"\s+", " ", numbers.group()),
        json.dumps(made, indent=1),
    )
    assert json.loads(text) == made
    GOLDEN.write_text(text + "\n")


if __name__ == "__main__":
    main()
