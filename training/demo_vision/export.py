"""A checkpoint's weights under the names that transformers has for them, in bfloat16."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from training.demo_vision.model import Qwen3Vl
from training.demo_vision.sizes import PATCH

KERNEL = "visual.patch_embed.proj.weight"
PREFIX = "model."


def export(model: Qwen3Vl, directory: Path) -> None:
    """Replaces the file in one step. The two frames of the kernel share what the model has learned for one."""
    tensors = dict(model.state_dict())
    kernel = tensors[KERNEL].unflatten(1, (3, 1, PATCH, PATCH)) / 2
    tensors[KERNEL] = torch.cat((kernel, kernel), dim=2)
    weights = {
        PREFIX + name: value.detach().to(torch.bfloat16).contiguous()
        for name, value in tensors.items()
    }
    temporary = directory / ".model.safetensors.new"
    save_file(weights, str(temporary), metadata={"format": "pt"})
    temporary.chmod(0o644)
    temporary.rename(directory / "model.safetensors")


def load_exported(model: Qwen3Vl, directory: Path) -> None:
    stored = load_file(str(directory / "model.safetensors"))
    names = [name for name in stored if not name.endswith(("_scale", "_zero_point"))]
    tensors = {name.removeprefix(PREFIX): plain(stored, name) for name in names}
    tensors[KERNEL] = tensors[KERNEL].sum(dim=2).flatten(1)
    model.load_state_dict(tensors)


def plain(stored: dict[str, Tensor], name: str) -> Tensor:
    """Returns a tensor in float32, also one that `tools.store_int8` has stored."""
    scale = stored.get(f"{name}_scale")
    value = stored[name].float()
    return value if scale is None else (value - stored[f"{name}_zero_point"].float()) * scale
