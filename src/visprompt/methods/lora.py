"""LoRA: a low-rank change of the query and value projections, W + (alpha / r) B A.

Hu et al. 2022, Eq. 3. timm fuses queries, keys and values into one layer of 3D outputs. One A for
the fused layer would tie the three together, which is another method (libraries that wrap the fused
layer do that); here each projection has its own A (r, D) and B (D, r).
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..checks import Count, Positive, Words
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import base
from .prompts import check_tokens, uniform_

TARGETS = ["query", "key", "value"]


@dataclass(frozen=True)
class Settings:
    """The rank r, alpha, and the projections that are changed."""

    # r = 10 in AP's Appendix A; accuracy flattens beyond it, says the text to Table A8
    rank: Count = 10
    alpha: Positive | None = None  # None: alpha = r, so that B A is not scaled
    targets: Words = ("query", "value")  # the original's choice


class Method(base.Method):
    """Trains A and B per projection and block; B starts at zero, LoRA thus as a linear probe."""

    families = ("vit",)
    inside = True
    start = 0

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        rank, width = check_tokens(settings.rank, "rank"), backbone.width
        for target in settings.targets:
            choose("target of LoRA", target, TARGETS)
        if not settings.targets or rank > width:
            raise BadInput(
                f"LoRA needs one target or more of {TARGETS}, and a rank of 1 to {width}, "
                f"the width."
            )
        self.scale = 1.0 if settings.alpha is None else settings.alpha / rank
        count = backbone.depth * len(settings.targets)
        self.down = nn.ParameterList(torch.empty(rank, width) for _ in range(count))
        self.up = nn.ParameterList(torch.empty(width, rank) for _ in range(count))

    def reset(self, generator: torch.Generator) -> None:
        for down, up in zip(self.down, self.up, strict=True):
            uniform_(down, 1 / math.sqrt(down.shape[1]), generator)  # Kaiming, as the original
            nn.init.zeros_(up)

    def pairs(self, index: int) -> list[tuple[torch.Tensor, torch.Tensor] | None]:
        """(A, B) of query, key and value at block `index`; None for a projection left alone."""
        targets, at = self.settings.targets, {}
        for place, target in enumerate(targets):
            at[target] = index * len(targets) + place
        return [(self.down[at[t]], self.up[at[t]]) if t in at else None for t in TARGETS]

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if name != "qkv":
            return layer(x)
        change = [
            x.new_zeros(()) if p is None else F.linear(F.linear(x, p[0]), p[1])
            for p in self.pairs(index)
        ]
        change = [part.expand(x.shape) for part in change]
        return layer(x) + self.scale * torch.cat(change, -1)

    def merge(self, backbone: Backbone) -> None:
        with torch.no_grad():
            for index, block in enumerate(backbone.blocks):
                for third, pair in zip(
                    block.attn.qkv.weight.chunk(3), self.pairs(index), strict=True
                ):
                    if pair is not None:
                        third += self.scale * pair[1] @ pair[0]
