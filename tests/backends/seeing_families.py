"""Lists the vision families with the settings and special tokens of published checkpoints."""

from tests.backends import seeing_templates as templates
from tests.backends.seeing_family import SeeingFamily
from tests.backends.seeing_settings import (
    CHATML,
    CLIP,
    HALVES,
    IMAGE_TOKEN,
    MISTRAL,
    MISTRAL_TOKENS,
    PIXTRAL,
    PIXTRAL_TOKENS,
    gemma3,
    gemma4,
    glm_ocr,
    granite4_vision,
    granite4_vision_clip,
    granite_vision,
    idefics3,
    internvl,
    lfm2_vl,
    llava,
    paddleocr_vl,
    qwen2_vl,
    qwen3_vl,
)

__all__ = ["FAMILIES", "IMAGE_TOKEN"]

CLIP_OF_LLAVA = {
    "image_processor_type": "CLIPImageProcessor",
    **CLIP,
    "size": {"shortest_edge": 23},
    "crop_size": {"height": 23, "width": 23},
    "do_center_crop": True,
}
FAMILIES: dict[str, SeeingFamily] = {
    "gemma3": gemma3(),
    "gemma3 with pan and scan": gemma3(
        do_pan_and_scan=True,
        pan_and_scan_min_crop_size=20,
        pan_and_scan_max_num_crops=4,
        pan_and_scan_min_ratio_to_activate=1.2,
    ),
    # The processor makes at least 70 tokens of an image, more than the golden checkpoint's window.
    "gemma4": gemma4("gemma4", sliding_window=96),
    "gemma4-layers": gemma4("gemma4-layers"),
    "glm_ocr": glm_ocr(),
    "granite4_vision": granite4_vision("granite4_vision"),
    "granite4_vision-clip": granite4_vision_clip(),
    "granite4_vision-heads": granite4_vision("granite4_vision-heads"),
    "idefics3": idefics3("idefics3", templates.IDEFICS3, 26, "Idefics3ImageProcessor"),
    "internvl": internvl("internvl"),
    "internvl-norms": internvl("internvl-norms"),
    "lfm2_vl": lfm2_vl("lfm2_vl"),
    "lfm2_vl-plain": lfm2_vl("lfm2_vl-plain", use_thumbnail=False),
    "llava": llava(
        "llava",
        CLIP_OF_LLAVA,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ),
    "llava of before processor_config.json": llava("llava", CLIP_OF_LLAVA),
    "llava-siglip": llava(
        "llava-siglip",
        {
            "image_processor_type": "SiglipImageProcessor",
            **HALVES,
            "size": {"height": 23, "width": 23},
            "resample": 3,
        },
        patch_size=4,
        vision_feature_select_strategy="full",
        num_additional_image_tokens=0,
    ),
    "llava_next": SeeingFamily(
        checkpoint="llava_next",
        template=templates.LLAVA_NEXT,
        marks={"<image>": IMAGE_TOKEN},
        more_marks=("<unk>", "<s>", "</s>", "<pad>"),
        preprocessor={
            "image_processor_type": "LlavaNextImageProcessor",
            **CLIP,
            "size": {"shortest_edge": 14},
            "crop_size": {"height": 14, "width": 14},
            "image_grid_pinpoints": [[14, 28], [28, 14], [28, 28], [42, 14], [14, 42]],
        },
        processor={
            "patch_size": 4,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
        tokenizer_config={"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
        kind="sentencepiece",
    ),
    "llava_next-granite": granite_vision(),
    "llava_onevision": SeeingFamily(
        checkpoint="llava_onevision",
        template=templates.LLAVA_ONEVISION,
        marks={"<image>": IMAGE_TOKEN, "<video>": 6},
        more_marks=CHATML,
        preprocessor={
            "image_processor_type": "LlavaOnevisionImageProcessor",
            **HALVES,
            "size": {"height": 14, "width": 14},
            "image_grid_pinpoints": [
                [height, width] for height in (14, 28, 42) for width in (14, 28, 42)
            ],
        },
        processor={
            "num_image_tokens": 9,
            "vision_feature_select_strategy": "full",
            "vision_aspect_ratio": "anyres_max_3",
        },
    ),
    "mistral3": SeeingFamily(
        checkpoint="mistral3",
        template=templates.MISTRAL,
        marks={"[IMG]": IMAGE_TOKEN},
        more_marks=MISTRAL,
        preprocessor={**PIXTRAL, "patch_size": 4},
        processor={**PIXTRAL_TOKENS, "patch_size": 4, "spatial_merge_size": 2},
        tokenizer_config=MISTRAL_TOKENS,
    ),
    "paddleocr_vl": paddleocr_vl(),
    "pixtral": SeeingFamily(
        checkpoint="pixtral",
        template=templates.MISTRAL,
        marks={"[IMG]": IMAGE_TOKEN},
        more_marks=MISTRAL,
        preprocessor={**PIXTRAL, "patch_size": {"height": 4, "width": 4}},
        processor={**PIXTRAL_TOKENS, "patch_size": 4},
        tokenizer_config=MISTRAL_TOKENS,
    ),
    "qwen2_vl": qwen2_vl(
        "qwen2_vl", image_processor_type="Qwen2VLImageProcessor", min_pixels=256, max_pixels=4096
    ),
    "qwen2_5_vl": qwen2_vl(
        "qwen2_5_vl",
        image_processor_type="Qwen2_5_VLImageProcessor",
        min_pixels=256,
        max_pixels=4096,
    ),
    "qwen3_5": qwen3_vl("qwen3_5", templates.QWEN3_5),
    "qwen3_vl": qwen3_vl("qwen3_vl", templates.QWEN3_VL),
    "qwen3_vl_moe": qwen3_vl("qwen3_vl_moe", templates.QWEN3_VL),
    "smolvlm": idefics3("smolvlm", templates.SMOLVLM, 16, "SmolVLMImageProcessor"),
}
