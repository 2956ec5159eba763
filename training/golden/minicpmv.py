"""MiniCPM-V 2.6 to 4.5, which transformers has as code of the checkpoints only.

The program follows their modeling_minicpmv.py, resampler.py and image_processing_minicpmv.py, of transformers' parts.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, MiniCPMV4_6ImageProcessorPil
from transformers.models.siglip.configuration_siglip import SiglipVisionConfig
from transformers.models.siglip.modeling_siglip import SiglipEncoder

TEXTS = {2.6: "qwen2", 4.0: "llama", 4.5: "qwen3"}
HEAD_DIM = 128
MARKS = ("im_start", "im_end", "slice_start", "slice_end", "im_id_start", "im_id_end")


class Tower(torch.nn.Module):
    def __init__(self, config: SiglipVisionConfig) -> None:
        super().__init__()
        size, patch = config.hidden_size, config.patch_size
        self.side = config.image_size // patch
        self.embeddings = torch.nn.Module()
        self.embeddings.patch_embedding = torch.nn.Conv2d(3, size, patch, patch)
        self.embeddings.position_embedding = torch.nn.Embedding(self.side**2, size)
        self.encoder = SiglipEncoder(config)
        self.post_layernorm = torch.nn.LayerNorm(size, eps=config.layer_norm_eps)

    def forward(self, tile: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
        """Takes [3, height, width]; gives [patches, size], and the rows and columns of patches."""
        grid = self.embeddings.patch_embedding(tile[None])[0]
        rows, columns = grid.shape[1:]
        places = [
            row * self.side // rows * self.side + column * self.side // columns
            for row in range(rows)
            for column in range(columns)
        ]
        embedded = grid.flatten(1).T + self.embeddings.position_embedding(torch.tensor(places))
        states = self.encoder(inputs_embeds=embedded[None]).last_hidden_state
        return self.post_layernorm(states)[0], (rows, columns)


class Resampler(torch.nn.Module):
    def __init__(self, num_queries: int, size: int, width: int) -> None:
        super().__init__()
        self.query = torch.nn.Parameter(torch.zeros(num_queries, size))
        self.kv_proj = torch.nn.Linear(width, size, bias=False)
        self.attn = torch.nn.MultiheadAttention(size, size // HEAD_DIM)
        self.ln_q, self.ln_kv, self.ln_post = (torch.nn.LayerNorm(size, eps=1e-6) for _ in range(3))
        self.proj = torch.nn.Parameter(torch.zeros(size, size))

    def forward(self, states: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
        values = self.ln_kv(self.kv_proj(states))[:, None]
        keys = values + torch.tensor(sincos(*shape, values.shape[-1]))[:, None]
        mixed = self.attn(self.ln_q(self.query)[:, None], keys, values, need_weights=False)[0]
        return self.ln_post(mixed[:, 0]) @ self.proj


def sincos(rows: int, columns: int, size: int) -> Any:
    """The columns' waves stand before the rows', each sines before cosines."""

    def waves(places: Any) -> Any:
        omega = np.arange(size // 4, dtype=np.float32) / np.float32(size / 4)
        angles = np.float32(places)[:, None] * (1.0 / 10000**omega)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    down, across = np.divmod(np.arange(rows * columns), columns)
    return np.concatenate([waves(across), waves(down)], axis=1).astype(np.float32)


class MiniCPMV(torch.nn.Module):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.settings = settings
        text = {key: each for key, each in settings.items() if key not in ("model_type", "version")}
        self.config = AutoConfig.for_model(TEXTS[settings["version"]], **text)
        self.llm = AutoModelForCausalLM.from_config(self.config, attn_implementation="eager")
        vision = SiglipVisionConfig(**settings["vision_config"])
        vision._attn_implementation = "eager"
        self.vpm = Tower(vision)
        size = self.config.hidden_size
        self.resampler = Resampler(settings["query_num"], size, vision.hidden_size)
        # as the program for golden files wants it of models
        self.model = SimpleNamespace(get_decoder=lambda: self.llm.model)

    def get_output_embeddings(self) -> Any:
        return self.llm.get_output_embeddings()

    def features(self, tiles: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([self.resampler(*self.vpm(tile)) for tile in tiles])

    def forward(
        self, input_ids: torch.Tensor, tiles: list[torch.Tensor], image_token: int, **_: Any
    ) -> Any:
        embeddings = self.llm.get_input_embeddings()(input_ids).clone()
        embeddings[input_ids == image_token] = self.features(tiles)
        return self.llm(inputs_embeds=embeddings, use_cache=False)

    def save_pretrained(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        tensors = {name: each.contiguous() for name, each in self.state_dict().items()}
        if self.config.tie_word_embeddings:
            del tensors["llm.lm_head.weight"]
        save_file(tensors, directory / "model.safetensors", {"format": "pt"})
        config = self.settings | {"architectures": ["MiniCPMV"]}
        (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load_model(directory: Path) -> Any:
    from safetensors.torch import load_file  # noqa: PLC0415

    model = MiniCPMV(json.loads((directory / "config.json").read_text())).float()
    tensors = {
        name: each.float() for name, each in load_file(directory / "model.safetensors").items()
    }
    left, unknown = model.load_state_dict(tensors, strict=False)
    assert not unknown
    assert set(left) <= {"llm.lm_head.weight"}
    return model.eval()


class Slicing(MiniCPMV4_6ImageProcessorPil):
    """Sides are multiples of one patch here, and of four in the later model."""

    def find_best_resize(
        self, image_size: Any, scale_resolution: int, patch_size: int, *_: Any, **more: Any
    ) -> Any:
        height, width = image_size
        if height * width > scale_resolution**2 or more.get("allow_upscale"):
            ratio = width / height
            height = int(scale_resolution / ratio**0.5)
            width = int(height * ratio)
        return tuple(
            max(round(each / patch_size) * patch_size, patch_size) for each in (height, width)
        )


class Processor:
    """Does what processing_minicpmv.py does, in the shape of transformers' processors."""

    def __init__(self, tokenizer: Any, settings: dict[str, Any]) -> None:
        self.tokenizer, self.settings = tokenizer, settings
        self.image_processor = Slicing(
            image_mean=settings["norm_mean"],
            image_std=settings["norm_std"],
            **{key: settings[key] for key in ("max_slice_nums", "scale_resolution", "patch_size")},
        )
        self.num_features = settings["image_feature_size"]

    def _merge_kwargs(self, images_kwargs: dict[str, Any]) -> dict[str, Any]:
        return {"images_kwargs": images_kwargs}

    def _process_images(self, images: Any, **settings: Any) -> tuple[Any, list[str]]:
        outputs = self.image_processor(images, **settings)
        start, end, slice_start, slice_end, *_ = (self.settings[name] for name in MARKS)
        features = self.settings["unk"] * self.num_features
        texts = []
        for rows, columns in outputs["grids"]:
            line = f"{slice_start}{features}{slice_end}" * columns
            texts.append(f"{start}{features}{end}" + "\n".join([line] * rows))
        return outputs, texts

    def __call__(self, text: list[str], images: Any, images_kwargs: Any, **_: Any) -> Any:
        outputs, texts = self._process_images(images, **images_kwargs)
        pieces = text[0].split("(<image>./</image>)")
        assert len(pieces) == len(texts) + 1
        begin, end = self.settings["im_id_start"], self.settings["im_id_end"]
        if self.settings["use_image_id"]:
            texts = [f"{begin}{number}{end}{each}" for number, each in enumerate(texts)]
        whole = pieces[0] + "".join(
            each + piece for each, piece in zip(texts, pieces[1:], strict=True)
        )
        ids = self.tokenizer(whole, add_special_tokens=False)["input_ids"]
        return {"input_ids": [ids], "outputs": outputs}


def tiles_of(outputs: Any, patch: int) -> list[torch.Tensor]:
    """Cuts what is packed into one row of patches into tiles [3, height, width]."""
    packed, begin, tiles = np.asarray(outputs["pixel_values"])[0], 0, []
    for rows, columns in np.asarray(outputs["target_sizes"]).tolist():
        end = begin + rows * columns * patch
        cut = packed[:, :, begin:end].reshape(3, patch, rows, columns, patch)
        tile = cut.transpose(0, 2, 1, 3, 4).reshape(3, rows * patch, columns * patch)
        tiles.append(torch.tensor(tile))
        begin = end
    return tiles


def model_inputs(processor: Processor, text: str, images: Any, image_token: int) -> dict[str, Any]:
    made = processor(text=[text], images=images, images_kwargs={})
    return {
        "input_ids": torch.tensor(made["input_ids"]),
        "tiles": tiles_of(made["outputs"], processor.settings["patch_size"]),
        "image_token": image_token,
    }
