"""The settings under which the image processors are run: as checkpoints of each family have them, where not noted."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]  # Any: what goes into a JSON file

CLIP_NORMALISATION = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
HALVES = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
IMAGENET_NORMALISATION = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    processor_class: str  # with the name of its module's folder before it
    image_processor: Json  # of preprocessor_config.json
    config: Json
    prompt: str = "<image>"  # what the chat template writes for one picture
    placeholder: str = "<image>"
    processor: Json = field(default_factory=dict)  # of processor_config.json
    tokens: Json = field(default_factory=dict)  # of tokenizer_config.json
    # what makes the reference do what low detail is here; None: nothing does
    low: Json | None = None
    auto: Json = field(
        default_factory=dict
    )  # what turns on in the reference what its processor turns off
    nested: bool = False  # the settings stand in processor_config.json
    in_pieces: bool = False  # pictures may be several pieces


def _qwen(
    name: str, processor_class: str, image_processor: Json, vision: Json, **more: Any
) -> Family:
    tokens = {"image_token": "<|image_pad|>"} if name != "qwen2_vl" else {}
    min_pixels = image_processor.get("size", {}).get("shortest_edge", 3136)
    return Family(
        name,
        processor_class,
        {"image_processor_type": "Qwen2VLImageProcessor", **image_processor},
        {"model_type": name, "vision_config": vision},
        prompt="<|vision_start|><|image_pad|><|vision_end|>",
        placeholder="<|image_pad|>",
        tokens=tokens,
        low={"size": {"shortest_edge": min_pixels, "longest_edge": 512 * 512}},
        **more,
    )


_CLIP_336 = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 336},
    "crop_size": {"height": 336, "width": 336},
    "do_center_crop": True,
    "resample": 3,
    **CLIP_NORMALISATION,
}
_CLIP_CONFIG = {
    "vision_config": {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
}
_SIGLIP_CONFIG = {
    "vision_config": {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
}
_PIXTRAL = {"image_processor_type": "PixtralImageProcessor", **CLIP_NORMALISATION}
_PIXTRAL_TOKENS = {
    "image_token": "[IMG]",
    "image_break_token": "[IMG_BREAK]",
    "image_end_token": "[IMG_END]",
}
_GEMMA3 = {
    "image_processor_type": "Gemma3ImageProcessor",
    "size": {"height": 896, "width": 896},
    "resample": 2,
    "do_pan_and_scan": None,
    **HALVES,
}
_GEMMA3_TOKENS = {
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
_GEMMA4_TOKENS = {
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "image_token": "<|image|>",
    "boa_token": "<|audio>",  # without which the reference takes no picture either
    "eoa_token": "<audio|>",
    "audio_token": "<|audio|>",
}
# The golden tokenizer has none of the published names for slices and numbers.
_MINICPMV_TOKENS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "image_start_token": "<img>",
    "image_end_token": "</img>",
    "slice_start_token": "<|vision_start|>",
    "slice_end_token": "<|vision_end|>",
    "image_id_start_token": "<start_of_image>",
    "image_id_end_token": "<end_of_image>",
}
_PAN_AND_SCAN = {
    "do_pan_and_scan": True,
    "pan_and_scan_min_crop_size": 100,
    "pan_and_scan_max_num_crops": 3,
    "pan_and_scan_min_ratio_to_activate": 1.3,
}

FAMILIES = [
    _qwen(
        "qwen2_vl",
        "qwen2_vl.Qwen2VLProcessor",
        {
            "min_pixels": 3136,
            "max_pixels": 12845056,
            "patch_size": 14,
            "merge_size": 2,
            **CLIP_NORMALISATION,
        },
        {"patch_size": 14, "spatial_merge_size": 2},
    ),
    _qwen(
        "qwen2_5_vl",
        "qwen2_5_vl.Qwen2_5_VLProcessor",
        {},
        {"patch_size": 14, "spatial_merge_size": 2},
    ),
    _qwen(
        "qwen3_vl",
        "qwen3_vl.Qwen3VLProcessor",
        {
            "size": {"shortest_edge": 65536, "longest_edge": 16777216},
            "patch_size": 16,
            "merge_size": 2,
            **HALVES,
        },
        {"patch_size": 16, "spatial_merge_size": 2},
        nested=True,
    ),
    Family(
        "llava",
        "llava.LlavaProcessor",
        _CLIP_336,
        {"model_type": "llava", **_CLIP_CONFIG},
        processor={
            "patch_size": 14,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
        low={},
    ),
    Family(
        "llava_siglip",
        "llava.LlavaProcessor",
        {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}},
        {"model_type": "llava", "vision_feature_select_strategy": "full", **_SIGLIP_CONFIG},
        processor={
            "patch_size": 14,
            "vision_feature_select_strategy": "full",
            "num_additional_image_tokens": 0,
        },
    ),
    Family(
        "llava_padded",  # as the first LLaVA did; no checkpoint of transformers does
        "llava.LlavaProcessor",
        {**_CLIP_336, "image_processor_type": "LlavaImageProcessor", "do_pad": True},
        {"model_type": "llava", **_CLIP_CONFIG},
        processor={
            "patch_size": 14,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
    ),
    Family(
        "pixtral",
        "pixtral.PixtralProcessor",
        {**_PIXTRAL, "size": {"longest_edge": 1024}, "patch_size": {"height": 16, "width": 16}},
        {"model_type": "llava", "vision_config": {"model_type": "pixtral", "patch_size": 16}},
        prompt="[IMG]",
        placeholder="[IMG]",
        processor={"patch_size": 16, **_PIXTRAL_TOKENS},
        low={"size": {"longest_edge": 512}},
    ),
    Family(
        "mistral3",
        "pixtral.PixtralProcessor",
        {**_PIXTRAL, "size": {"longest_edge": 1540}, "patch_size": 14},
        {
            "model_type": "mistral3",
            "spatial_merge_size": 2,
            "vision_config": {"model_type": "pixtral"},
        },
        prompt="[IMG]",
        placeholder="[IMG]",
        processor={"patch_size": 14, "spatial_merge_size": 2, **_PIXTRAL_TOKENS},
        low={"size": {"longest_edge": 512}},
    ),
    Family(
        "smolvlm",
        "smolvlm.SmolVLMProcessor",
        {
            "image_processor_type": "SmolVLMImageProcessor",
            "size": {"longest_edge": 2048},
            "max_image_size": {"longest_edge": 512},
            **HALVES,
        },
        {"model_type": "smolvlm", "vision_config": {"image_size": 512, "patch_size": 16}},
        processor={"image_seq_len": 64},
        low={"do_image_splitting": False},
    ),
    Family(
        "idefics3",
        "idefics3.Idefics3Processor",
        {"image_processor_type": "Idefics3ImageProcessor"},
        {"model_type": "idefics3", "vision_config": {"image_size": 364, "patch_size": 14}},
        low={"do_image_splitting": False},
    ),
    Family(
        "gemma3",
        "gemma3.Gemma3Processor",
        _GEMMA3,
        {"model_type": "gemma3", "vision_config": {"image_size": 896}},
        prompt="<start_of_image>",
        placeholder="<start_of_image>",
        processor={"image_seq_length": 256},
        tokens=_GEMMA3_TOKENS,
        low={},
    ),
    Family(
        "gemma3_pan_and_scan",  # no checkpoint turns it on
        "gemma3.Gemma3Processor",
        {**_GEMMA3, **_PAN_AND_SCAN, "size": {"height": 224, "width": 224}},
        {"model_type": "gemma3", "vision_config": {"image_size": 224}},
        prompt="<start_of_image>",
        placeholder="<start_of_image>",
        processor={"image_seq_length": 16},
        tokens=_GEMMA3_TOKENS,
        low={"do_pan_and_scan": False},
        auto=_PAN_AND_SCAN,
    ),
    Family(
        "internvl",
        "internvl.InternVLProcessor",
        {
            "image_processor_type": "GotOcr2ImageProcessorFast",
            "size": {"height": 448, "width": 448},
            "crop_to_patches": False,
            "min_patches": 1,
            "max_patches": 12,
            **IMAGENET_NORMALISATION,
        },
        {
            "model_type": "internvl",
            "vision_config": {"image_size": [448, 448], "patch_size": [14, 14]},
        },
        prompt="<IMG_CONTEXT>\n",
        placeholder="<IMG_CONTEXT>",
        processor={"image_seq_length": 256},
        tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        low={"crop_to_patches": False},
    ),
    Family(
        "glm_ocr",
        "glm46v.Glm46VProcessor",
        {
            "image_processor_type": "Glm46VImageProcessor",
            "size": {"shortest_edge": 12544, "longest_edge": 9633792},
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
            **CLIP_NORMALISATION,
        },
        {"model_type": "glm_ocr", "vision_config": {"patch_size": 14, "spatial_merge_size": 2}},
        prompt="<|image|>",
        placeholder="<|image|>",
        tokens={"image_token": "<|image|>"},
        low={"size": {"shortest_edge": 12544, "longest_edge": 2 * 512 * 512}},
    ),
    Family(
        "paddleocr_vl",
        "paddleocr_vl.PaddleOCRVLProcessor",
        {
            "image_processor_type": "PaddleOCRVLImageProcessor",
            "min_pixels": 147384,
            "max_pixels": 2822400,
            "patch_size": 14,
            "merge_size": 2,
            "temporal_patch_size": 1,
            **HALVES,
        },
        {
            "model_type": "paddleocr_vl",
            "vision_config": {"patch_size": 14, "spatial_merge_size": 2},
        },
        prompt="<image>",
        placeholder="<image>",
        tokens={"image_token": "<image>"},  # the golden tokenizer has no <|IMAGE_PLACEHOLDER|>
        low={"size": {"shortest_edge": 147384, "longest_edge": 512 * 512}},
    ),
    Family(
        "lfm2_vl",
        "lfm2_vl.Lfm2VlProcessor",
        {
            "image_processor_type": "Lfm2VlImageProcessorFast",
            "do_resize": False,
            "do_image_splitting": True,
            "downsample_factor": 2,
            "encoder_patch_size": 16,
            "max_image_tokens": 256,
            "max_num_patches": 1024,
            "max_pixels_tolerance": 2.0,
            "max_tiles": 10,
            "min_image_tokens": 64,
            "min_tiles": 2,
            "patch_size": 16,
            "resample": 2,
            "tile_size": 512,
            "use_thumbnail": True,
            **HALVES,
        },
        {"model_type": "lfm2_vl", "downsample_factor": 2, "vision_config": {"patch_size": 16}},
        tokens={"image_token": "<image>"},
        low={"do_image_splitting": False},
        in_pieces=True,
    ),
    Family(
        "minicpmv4_6",
        "minicpmv4_6.MiniCPMV4_6Processor",
        {
            "image_processor_type": "MiniCPMV4_6ImageProcessor",
            "max_slice_nums": 9,
            "scale_resolution": 448,
            "patch_size": 14,
            "use_image_id": True,
            "slice_mode": True,
            **HALVES,
        },
        {
            "model_type": "minicpmv4_6",
            "vision_config": {"image_size": 980, "patch_size": 14},
        },
        prompt="<|image_pad|>",
        placeholder="<|image_pad|>",
        tokens=_MINICPMV_TOKENS,
        low={"slice_mode": False},
        in_pieces=True,
    ),
    Family(
        "minicpmv4_6_4x",  # no checkpoint says so; few slices, and pictures without numbers
        "minicpmv4_6.MiniCPMV4_6Processor",
        {
            "image_processor_type": "MiniCPMV4_6ImageProcessorPil",
            "max_slice_nums": 5,
            "scale_resolution": 224,
            "patch_size": 16,
            "use_image_id": False,
            "downsample_mode": "4x",
            "resample": 2,
        },
        {
            "model_type": "minicpmv4_6",
            "downsample_mode": "4x",
            "vision_config": {},
        },
        prompt="<|image_pad|>",
        placeholder="<|image_pad|>",
        tokens=_MINICPMV_TOKENS,
        low={"slice_mode": False},
        in_pieces=True,
    ),
    Family(
        "minicpmv",
        "minicpmv.Processor",  # of the program for golden files
        {
            "image_processor_type": "MiniCPMVImageProcessor",
            "max_slice_nums": 9,
            "scale_resolution": 448,
            "patch_size": 14,
            "use_image_id": True,
            "image_feature_size": 64,
            # The golden tokenizer has none of the published names for slices and numbers.
            "im_start": "<img>",
            "im_end": "</img>",
            "slice_start": "<|vision_start|>",
            "slice_end": "<|vision_end|>",
            "im_id_start": "<start_of_image>",
            "im_id_end": "<end_of_image>",
            "unk": "<|image_pad|>",
            "slice_mode": True,
            "norm_mean": [0.5, 0.5, 0.5],
            "norm_std": [0.5, 0.5, 0.5],
            "version": 4.5,
        },
        {
            "model_type": "minicpmv",
            "version": 4.5,
            "query_num": 64,
            "vision_config": {"model_type": "siglip", "image_size": 980, "patch_size": 14},
        },
        prompt="(<image>./</image>)",
        placeholder="(<image>./</image>)",
        tokens={"image_token": "<|image_pad|>"},
        low={"slice_mode": False},
        in_pieces=True,
    ),
    Family(
        "llava_next",
        "llava_next.LlavaNextProcessor",
        {
            **_CLIP_336,
            "image_processor_type": "LlavaNextImageProcessor",
            "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
        },
        {"model_type": "llava_next", **_CLIP_CONFIG},
        processor={
            "patch_size": 14,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
    ),
    Family(
        "granite4_vision",
        "granite4_vision.Granite4VisionProcessor",
        {
            "image_processor_type": "LlavaNextImageProcessor",
            "size": {"height": 384, "width": 384},
            "crop_size": {"height": 384, "width": 384},
            "image_grid_pinpoints": [
                [384 * down, 384 * across]
                for down in range(1, 11)
                for across in range(1, 11)
                if down * across <= 10
            ],
            "resample": 3,
            **HALVES,
        },
        {
            "model_type": "granite4_vision",
            "downsample_rate": "4/8",
            "vision_config": {
                "model_type": "siglip_vision_model",
                "image_size": 384,
                "patch_size": 16,
            },
        },
        processor={
            "patch_size": 16,
            "vision_feature_select_strategy": "full",
            "num_additional_image_tokens": 0,
            "downsample_rate": "4/8",
        },
    ),
    Family(
        "llava_onevision",
        "llava_onevision.LlavaOnevisionProcessor",
        {
            "image_processor_type": "LlavaOnevisionImageProcessor",
            "size": {"height": 384, "width": 384},
            **HALVES,
        },
        {"model_type": "llava_onevision", **_SIGLIP_CONFIG},
        processor={
            "num_image_tokens": 729,
            "vision_feature_select_strategy": "full",
            "vision_aspect_ratio": "anyres_max_9",
        },
    ),
    Family(
        "gemma4",
        "gemma4.Gemma4Processor",
        {"image_processor_type": "Gemma4ImageProcessor"},
        {"model_type": "gemma4", "vision_config": {"patch_size": 16, "pooling_kernel_size": 3}},
        prompt="\n\n<|image|>\n\n",
        placeholder="<|image|>",
        processor={"image_seq_length": 280},
        tokens=_GEMMA4_TOKENS,
        low={"max_soft_tokens": 70},
    ),
]
