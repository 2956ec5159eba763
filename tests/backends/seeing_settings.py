"""Builds vision families from the settings and special tokens of published checkpoints."""

from collections.abc import Mapping
from dataclasses import replace

from tests.backends import seeing_templates as templates
from tests.backends.seeing_family import SeeingFamily

IMAGE_TOKEN = 7  # the image token in config.json of all families
CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
}
HALVES = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


def places(rows: int, columns: int) -> tuple[str, ...]:
    return tuple(
        f"<row_{row}_col_{column}>"
        for row in range(1, rows + 1)
        for column in range(1, columns + 1)
    )


QWEN_MARKS = {
    "<|vision_end|>": 4,
    "<|vision_start|>": 5,
    "<|video_pad|>": 6,
    "<|image_pad|>": IMAGE_TOKEN,
}
CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MISTRAL = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[IMG_BREAK]",
    "[IMG_END]",
)
MISTRAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
PIXTRAL = {
    "image_processor_type": "PixtralImageProcessor",
    **CLIP,
    "size": {"longest_edge": 64},
    "do_resize": True,
}
PIXTRAL_TOKENS = {
    "image_token": "[IMG]",
    "image_break_token": "[IMG_BREAK]",
    "image_end_token": "[IMG_END]",
}
INTERNVL_TOKENS = {
    "extra_special_tokens": {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
}
GEMMA3_TOKENS = {
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
GEMMA4_MARKS = {
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "audio_token": "<|audio|>",
}


def qwen2_vl(checkpoint: str, **preprocessor: object) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.QWEN2_VL,
        marks=QWEN_MARKS,
        more_marks=CHATML,
        preprocessor={
            **CLIP,
            "patch_size": 4,
            "merge_size": 2,
            "temporal_patch_size": 2,
            **preprocessor,
        },
        videos={
            "video_processor_type": "Qwen2VLVideoProcessor",
            **CLIP,
            "size": {"shortest_edge": 256, "longest_edge": 4096},
            "patch_size": 4,
        },
    )


def qwen3_vl(checkpoint: str, template: str) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=template,
        marks=QWEN_MARKS,
        more_marks=(*CHATML, "<think>", "</think>"),
        preprocessor={
            "image_processor_type": "Qwen2VLImageProcessorFast",
            **HALVES,
            "size": {"shortest_edge": 256, "longest_edge": 4096},
            "patch_size": 4,
            "merge_size": 2,
            "temporal_patch_size": 2,
        },
        videos={
            "video_processor_type": "Qwen3VLVideoProcessor",
            **HALVES,
            "size": {"shortest_edge": 512, "longest_edge": 8192},
            "patch_size": 4,
            "fps": 2,
        },
        tokenizer_config={"extra_special_tokens": {"image_token": "<|image_pad|>"}},
    )


def idefics3(checkpoint: str, template: str, tile: int, kind: str) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=template,
        marks={"<image>": IMAGE_TOKEN},
        more_marks=(
            *(
                "<|begin_of_text|>",
                "<|im_start|>",
                "<end_of_utterance>",
                "<fake_token_around_image>",
                "<global-img>",
            ),
            *places(4, 4),
        ),
        preprocessor={
            "image_processor_type": kind,
            **HALVES,
            "resample": 1,
            "do_image_splitting": True,
            "do_pad": True,
            "size": {"longest_edge": 4 * tile},
            "max_image_size": {"longest_edge": tile},
        },
        processor={"image_seq_len": 4},
    )


def glm_ocr() -> SeeingFamily:
    return SeeingFamily(
        checkpoint="glm_ocr",
        template=templates.GLM_OCR,
        marks={"<|image|>": IMAGE_TOKEN},
        more_marks=(
            *("<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"),
            *("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>"),
        ),
        preprocessor={
            "image_processor_type": "Glm46VImageProcessor",
            **CLIP,
            "size": {"shortest_edge": 512, "longest_edge": 8192},
            "patch_size": 4,
            "merge_size": 2,
            "temporal_patch_size": 2,
        },
        tokenizer_config={"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
    )


def paddleocr_vl() -> SeeingFamily:
    return SeeingFamily(
        checkpoint="paddleocr_vl",
        template=templates.PADDLEOCR_VL,
        marks={"<|IMAGE_PLACEHOLDER|>": IMAGE_TOKEN},
        more_marks=("<unk>", "<s>", "</s>", "<|IMAGE_START|>", "<|IMAGE_END|>"),
        preprocessor={
            "image_processor_type": "PaddleOCRVLImageProcessor",
            **HALVES,
            "min_pixels": 256,
            "max_pixels": 4096,
            "patch_size": 4,
            "merge_size": 2,
            "temporal_patch_size": 1,
        },
        tokenizer_config={
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "extra_special_tokens": {"image_token": "<|IMAGE_PLACEHOLDER|>"},
        },
        kind="sentencepiece",
    )


def granite4_vision(checkpoint: str) -> SeeingFamily:
    return replace(
        granite_vision(),
        checkpoint=checkpoint,
        preprocessor={
            **granite_vision().preprocessor,
            "size": {"height": 17, "width": 17},
            "crop_size": {"height": 17, "width": 17},
            "image_grid_pinpoints": [[17, 17], [17, 34], [34, 17]],
        },
        processor={
            "patch_size": 2,
            "vision_feature_select_strategy": "full",
            "num_additional_image_tokens": 0,
            "downsample_rate": "2/4",
        },
    )


def granite4_vision_clip() -> SeeingFamily:
    return replace(
        granite4_vision("granite4_vision-clip"),
        processor={
            "patch_size": 2,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
            "downsample_rate": "2/4",
        },
    )


def granite_vision() -> SeeingFamily:
    return SeeingFamily(
        checkpoint="llava_next-granite",
        template=templates.GRANITE_VISION,
        marks={"<image>": IMAGE_TOKEN},
        more_marks=("<|end_of_text|>", "<|system|>", "<|user|>", "<|assistant|>"),
        preprocessor={
            "image_processor_type": "LlavaNextImageProcessor",
            **HALVES,
            "size": {"height": 14, "width": 14},
            "crop_size": {"height": 14, "width": 14},
            "do_center_crop": True,
            "resample": 3,
            "image_grid_pinpoints": [[14, 28], [28, 14], [28, 28], [42, 14], [14, 42]],
        },
        processor={
            "patch_size": 4,
            "vision_feature_select_strategy": "full",
            "num_additional_image_tokens": 0,
        },
        tokenizer_config={"bos_token": "<|end_of_text|>", "eos_token": "<|end_of_text|>"},
    )


def lfm2_vl(checkpoint: str, **preprocessor: object) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.LFM2_VL,
        marks={"<image>": IMAGE_TOKEN},
        more_marks=(
            *("<|startoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>"),
            *("<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"),
            *(f"<|img_row_{row}_col_{column}|>" for row in range(1, 7) for column in range(1, 7)),
        ),
        preprocessor={
            "image_processor_type": "Lfm2VlImageProcessorFast",
            **HALVES,
            "do_resize": False,
            "resample": 2,
            "encoder_patch_size": 4,
            "downsample_factor": 2,
            "tile_size": 16,
            "min_image_tokens": 2,
            "max_image_tokens": 6,
            "max_tiles": 6,
            **preprocessor,
        },
        tokenizer_config={
            "bos_token": "<|startoftext|>",
            "eos_token": "<|im_end|>",
            "extra_special_tokens": {
                "image_token": "<image>",
                "image_start_token": "<|image_start|>",
                "image_end_token": "<|image_end|>",
                "image_thumbnail": "<|img_thumbnail|>",
            },
        },
    )


def minicpmv4_6(checkpoint: str, scale: int, **preprocessor: object) -> SeeingFamily:
    """`scale` is the side of the square whose pixels each slice has."""
    kinds = ("image", "slice", "image_id")
    marks = {
        f"{kind}_{name}_token": f"<{sign}{kind}>"
        for kind in kinds
        for name, sign in (("start", ""), ("end", "/"))
    }
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.MINICPMV4_6,
        marks={"<|video_pad|>": 6, "<|image_pad|>": IMAGE_TOKEN},
        more_marks=(*CHATML, "<think>", "</think>", *marks.values()),
        preprocessor={
            "image_processor_type": "MiniCPMV4_6ImageProcessor",
            **HALVES,
            "max_slice_nums": 4,
            "scale_resolution": scale,
            "patch_size": 4,
            "use_image_id": True,
            "slice_mode": True,
            **preprocessor,
        },
        tokenizer_config={
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "extra_special_tokens": {
                "image_token": "<|image_pad|>",
                "video_token": "<|video_pad|>",
                **marks,
            },
        },
    )


def minicpmv(checkpoint: str, version: float, **preprocessor: object) -> SeeingFamily:
    kinds = {"im": "image", "slice": "slice", "im_id": "image_id"}
    marks = {
        f"{key}_{name}": f"<{sign}{text}>"
        for key, text in kinds.items()
        for name, sign in (("start", ""), ("end", "/"))
    }
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.MINICPMV,
        marks={"<unk>": IMAGE_TOKEN},
        more_marks=(*CHATML, *marks.values()),
        preprocessor={
            "image_processor_type": "MiniCPMVImageProcessor",
            "norm_mean": [0.5, 0.5, 0.5],
            "norm_std": [0.5, 0.5, 0.5],
            "max_slice_nums": 4,
            "scale_resolution": 24,
            "patch_size": 4,
            "use_image_id": True,
            "image_feature_size": 3,
            "slice_mode": True,
            "unk": "<unk>",
            "version": version,
            **marks,
            **preprocessor,
        },
        tokenizer_config={
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": "<unk>",
        },
    )


def gemma3(**preprocessor: object) -> SeeingFamily:
    return SeeingFamily(
        checkpoint="gemma3",
        template=templates.GEMMA3,
        marks={"<image_soft_token>": IMAGE_TOKEN},
        more_marks=(
            "<bos>",
            "<eos>",
            "<start_of_image>",
            "<end_of_image>",
            "<start_of_turn>",
            "<end_of_turn>",
        ),
        preprocessor={
            "image_processor_type": "Gemma3ImageProcessor",
            **HALVES,
            "resample": 2,
            "size": {"height": 32, "width": 32},
            "image_seq_length": 16,
            **preprocessor,
        },
        processor={"image_seq_length": 16},
        tokenizer_config=GEMMA3_TOKENS,
        kind="sentencepiece",
        line_breaks=("\n\n", "\n\n\n", "\n\n\n\n"),
    )


def paligemma(checkpoint: str) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template="",
        marks={"<image>": IMAGE_TOKEN},
        more_marks=("<bos>", "<eos>", "<pad>"),
        preprocessor={
            "image_processor_type": "SiglipImageProcessor",
            **HALVES,
            "resample": 3,
            "size": {"height": 18, "width": 18},
            "image_seq_length": 16,
        },
        tokenizer_config={"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"},
        kind="sentencepiece",
    )


def gemma4(checkpoint: str, **text_config: object) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.GEMMA4,
        marks={"<|audio|>": 5, "<|video|>": 6, "<|image|>": IMAGE_TOKEN},
        more_marks=(
            *("<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>"),
            *("<|image>", "<image|>", "<|audio>", "<audio|>"),
        ),
        preprocessor={
            "image_processor_type": "Gemma4ImageProcessor",
            "patch_size": 4,
            "pooling_kernel_size": 3,
            "max_soft_tokens": 70,
        },
        tokenizer_config={
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "pad_token": "<pad>",
            "image_token": "<|image|>",
            "extra_special_tokens": GEMMA4_MARKS,
        },
        kind="sentencepiece",
        line_breaks=("\n\n",),
        text_config=text_config,
    )


def internvl(checkpoint: str) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.INTERNVL,
        marks={"<IMG_CONTEXT>": IMAGE_TOKEN},
        more_marks=(*CHATML, "<img>", "</img>", "<video>"),
        preprocessor={
            "image_processor_type": "GotOcr2ImageProcessorFast",
            "image_mean": [0.485, 0.456, 0.406],
            "image_std": [0.229, 0.224, 0.225],
            "size": {"height": 16, "width": 16},
            "crop_to_patches": False,
            "min_patches": 1,
            "max_patches": 12,
        },
        videos={
            "video_processor_type": "InternVLVideoProcessor",
            "image_mean": [0.485, 0.456, 0.406],
            "image_std": [0.229, 0.224, 0.225],
            "size": {"height": 16, "width": 16},
        },
        processor={"image_seq_length": 4},
        tokenizer_config=INTERNVL_TOKENS,
    )


def llava(checkpoint: str, preprocessor: Mapping[str, object], **processor: object) -> SeeingFamily:
    return SeeingFamily(
        checkpoint=checkpoint,
        template=templates.LLAVA,
        marks={"<image>": IMAGE_TOKEN},
        more_marks=("<unk>", "<s>", "</s>", "<pad>"),
        preprocessor=preprocessor,
        processor=processor,
        tokenizer_config={"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
        kind="sentencepiece",
    )
