"""Writes tests/backends/golden_seeing.json: what transformers makes of whole chats with pictures. See README.md."""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast

from tests.backends.seeing_chats import GOLDEN_CHATS, NUM_LAST, Parts, shortened
from tests.backends.seeing_families import FAMILIES, IMAGE_TOKEN
from tests.backends.seeing_family import SeeingFamily
from tests.prompts.vision.pictures import picture
from training.golden import minicpmv
from training.golden.make_processors import assembled

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_seeing.json"
PROCESSORS = {  # by checkpoint, with the name of the module's folder before it
    "gemma3": "gemma3.Gemma3Processor",
    "gemma4": "gemma4.Gemma4Processor",
    "gemma4-layers": "gemma4.Gemma4Processor",
    "glm_ocr": "glm46v.Glm46VProcessor",
    "granite4_vision": "granite4_vision.Granite4VisionProcessor",
    "granite4_vision-clip": "granite4_vision.Granite4VisionProcessor",
    "granite4_vision-heads": "granite4_vision.Granite4VisionProcessor",
    "idefics3": "idefics3.Idefics3Processor",
    "internvl": "internvl.InternVLProcessor",
    "internvl-norms": "internvl.InternVLProcessor",
    "lfm2_vl": "lfm2_vl.Lfm2VlProcessor",
    "lfm2_vl-plain": "lfm2_vl.Lfm2VlProcessor",
    "llava": "llava.LlavaProcessor",
    "llava-siglip": "llava.LlavaProcessor",
    "llava_next": "llava_next.LlavaNextProcessor",
    "llava_next-granite": "llava_next.LlavaNextProcessor",
    "llava_onevision": "llava_onevision.LlavaOnevisionProcessor",
    "minicpmv4_6": "minicpmv4_6.MiniCPMV4_6Processor",
    "minicpmv4_6-4x": "minicpmv4_6.MiniCPMV4_6Processor",
    "mistral3": "pixtral.PixtralProcessor",
    "paddleocr_vl": "paddleocr_vl.PaddleOCRVLProcessor",
    "paligemma": "paligemma.PaliGemmaProcessor",
    "paligemma2": "paligemma.PaliGemmaProcessor",
    "pixtral": "pixtral.PixtralProcessor",
    "qwen2_5_vl": "qwen2_5_vl.Qwen2_5_VLProcessor",
    "qwen2_vl": "qwen2_vl.Qwen2VLProcessor",
    "qwen3_5": "qwen3_vl.Qwen3VLProcessor",
    "qwen3_vl": "qwen3_vl.Qwen3VLProcessor",
    "qwen3_vl_moe": "qwen3_vl.Qwen3VLProcessor",
    "smolvlm": "smolvlm.SmolVLMProcessor",
}
SMALLEST_GAP = 1e-3


def processor_of(family: SeeingFamily, tokenizer: Any) -> Any:
    """The reference needs what older checkpoints have in config.json only."""
    settings = dict(family.processor or FAMILIES[family.checkpoint].processor)
    image_processor = dict(family.preprocessor)
    if (
        image_processor["image_processor_type"] == "Qwen2_5_VLImageProcessor"
    ):  # its name in the first checkpoints
        image_processor["image_processor_type"] = "Qwen2VLImageProcessor"
    return assembled(PROCESSORS[family.checkpoint], tokenizer, image_processor, settings)


def inputs_of(family: SeeingFamily, processor: Any, text: str, parts: Parts) -> Any:
    images: Any = [picture(*part) for part in parts if not isinstance(part, str)]
    if isinstance(processor, minicpmv.Processor):
        return minicpmv.model_inputs(processor, text, images, IMAGE_TOKEN)
    if family.checkpoint in (
        "gemma3",
        "idefics3",
        "lfm2_vl",
        "lfm2_vl-plain",
        "llava_onevision",
        "paligemma",
        "paligemma2",
        "smolvlm",
    ):  # they want the pictures of each text
        images = [images]
    settings = {
        name: value for name, value in family.preprocessor.items() if "pan_and_scan" in name
    }
    inputs = processor(
        text=[text],
        images=images,
        images_kwargs=settings,
        text_kwargs={"add_special_tokens": False},
        return_mm_token_type_ids=bool(family.template),
        return_tensors="pt",
    )
    inputs.pop("labels", None)  # of PaliGemma's prompt, which has none
    return inputs


def golden_chat(
    family: SeeingFamily, tokenizer: Any, processor: Any, model: Any, parts: Parts
) -> dict[str, object]:
    content: Any = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in parts
    ]
    if isinstance(processor, minicpmv.Processor):
        content = "\n".join(each.get("text", "(<image>./</image>)") for each in content)
    messages = [{"role": "user", "content": content}]
    if family.template:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    else:  # the processor adds the rest
        text = "".join("" if isinstance(part, str) else "<image>" for part in parts)
        text += "".join(part for part in parts if isinstance(part, str))
    inputs = inputs_of(family, processor, text, parts)
    token_ids = inputs["input_ids"][0].tolist()
    with torch.no_grad():
        logprobs = torch.log_softmax(model(**inputs).logits[0].double(), dim=-1)
    first, second = logprobs[-1].topk(2).values.tolist()
    assert first - second > SMALLEST_GAP
    positions = range(len(token_ids) - NUM_LAST - 1, len(token_ids) - 1)
    return {
        "text": shortened(
            tokenizer.decode(token_ids), tokenizer.convert_ids_to_tokens(IMAGE_TOKEN)
        ),
        "num_tokens": len(token_ids),
        "logprobs": [
            round(float(logprobs[position, token_ids[position + 1]]), 6) for position in positions
        ],
        "next_token_id": int(logprobs[-1].argmax()),
        "next_logprob": round(first, 6),
    }


def golden(family: SeeingFamily) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        directory = family.write(Path(name))
        # PaliGemma's processor gives tokens that it adds the ids of others, as the vocabulary has gaps
        tokenizer, changed = (PreTrainedTokenizerFast.from_pretrained(directory) for _ in range(2))
        if family.preprocessor["image_processor_type"] == "MiniCPMVImageProcessor":
            processor: Any = minicpmv.Processor(changed, dict(family.preprocessor))
            model = minicpmv.load_model(directory)
            return {
                name: golden_chat(family, tokenizer, processor, model, parts)
                for name, parts in GOLDEN_CHATS.items()
            }
        processor = processor_of(family, changed)
        model = AutoModelForImageTextToText.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        return {
            name: golden_chat(family, tokenizer, processor, model, parts)
            for name, parts in GOLDEN_CHATS.items()
        }


def main() -> None:
    known = json.loads(GOLDEN.read_text()) if sys.argv[1:] else {}
    known |= {name: golden(FAMILIES[name]) for name in sys.argv[1:] or FAMILIES}
    made = {name: known[name] for name in FAMILIES}
    text = re.sub(
        r"\[[^\[\]]+\]",
        lambda numbers: re.sub(r"\s+", " ", numbers.group()),
        json.dumps(made, indent=1),
    )
    assert json.loads(text) == made
    GOLDEN.write_text(text + "\n")


if __name__ == "__main__":
    main()
