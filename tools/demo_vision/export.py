"""A checkpoint's weights under the names that transformers has for them, in bfloat16."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tools.demo_vision.model import Qwen3Vl
from tools.demo_vision.sizes import PATCH

KERNEL = "visual.patch_embed.proj.weight"
PREFIX = "model."


def export(model: Qwen3Vl, directory: Path) -> None:
    """Replaces the file in one step. The two frames of the kernel share what the model has learned for one."""
    tensors = dict(model.state_dict())
    kernel = tensors[KERNEL].unflatten(1, (3, 1, PATCH, PATCH)) / 2
    tensors[KERNEL] = torch.cat((kernel, kernel), dim=2)
    weights = {PREFIX + name: value.detach().to(torch.bfloat16).contiguous() for name, value in tensors.items()}
    temporary = directory / ".model.safetensors.new"
    save_file(weights, str(temporary), metadata={"format": "pt"})
    temporary.chmod(0o644)
    temporary.rename(directory / "model.safetensors")


def load_exported(model: Qwen3Vl, directory: Path) -> None:
    tensors: dict[str, Tensor] = {
        name.removeprefix(PREFIX): value.float()
        for name, value in load_file(str(directory / "model.safetensors")).items()
    }
    tensors[KERNEL] = tensors[KERNEL].sum(dim=2).flatten(1)
    model.load_state_dict(tensors)
