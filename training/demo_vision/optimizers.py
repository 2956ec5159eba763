"""Muon for the matrices, AdamW for the rest."""

import torch
from torch import Tensor, nn

MOMENTUM, DECAY = 0.95, 0.02
NUM_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal by Newton and Schulz's iteration (Jordan 2024)."""

    def __init__(self, by_pieces: dict[int, list[nn.Parameter]], rate: float) -> None:
        """Takes matrices by how many they are in one, one below the other."""
        super().__init__(
            [{"params": each, "pieces": pieces} for pieces, each in by_pieces.items()], {"lr": rate}
        )

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Matrices of one shape are made orthogonal together; those that are several in one, each by itself."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            rate = group["lr"]
            for alike in by_shape.values():
                momenta = torch.stack([self._momentum(each) for each in alike])
                pieces = momenta.unflatten(1, (group["pieces"], -1))
                updates = orthogonal(pieces.flatten(0, 1)).view_as(momenta)
                scale = 0.2 * max(pieces.shape[-2:]) ** 0.5
                for parameter, update in zip(alike, updates, strict=True):
                    parameter.mul_(1 - rate * DECAY).add_(update, alpha=-rate * scale)

    def _momentum(self, parameter: nn.Parameter) -> Tensor:
        """Takes in the new gradient; returns Nesterov's momentum."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if "buffer" not in state:
            state["buffer"] = torch.zeros_like(parameter)
        state["buffer"].lerp_(parameter.grad, 1 - MOMENTUM)
        return parameter.grad.lerp(state["buffer"], MOMENTUM)


def orthogonal(matrices: Tensor) -> Tensor:
    """Returns about the nearest matrices whose singular values are near one."""
    work = matrices.bfloat16()
    is_tall = work.shape[-2] > work.shape[-1]
    work = work.mT if is_tall else work
    work = work / (work.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(NUM_ITERATIONS):
        gram = work @ work.mT
        work = 3.4445 * work + (-4.775 * gram + 2.0315 * gram @ gram) @ work
    return (work.mT if is_tall else work).float()


def optimizers(modules: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    by_pieces: dict[int, list[nn.Parameter]] = {}
    others: list[nn.Parameter] = []
    for name, parameter in modules.named_parameters():
        if parameter.ndim == 2 and not any(
            part in name for part in ("embed_tokens", "pos_embed", "heads")
        ):
            by_pieces.setdefault(pieces_of(name), []).append(parameter)
        else:
            others.append(parameter)
    return [
        Muon(by_pieces, rate),
        torch.optim.AdamW(others, lr=2 * rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def pieces_of(name: str) -> int:
    """Queries, keys and values are three; the merger's square is cut, for the work grows with the cube of a side."""
    if "qkv" in name:
        return 3
    return 4 if "merger.linear_fc1" in name else 1
