"""Adapter: a bottleneck after attention and after the MLP, y + up(act(down(y))).

Houlsby et al. 2019, Fig. 2.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..checks import Count, Words
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import base
from .prompts import check_tokens, uniform_

PLACES = ["attn", "mlp"]


@dataclass(frozen=True)
class Settings:
    """Width, activation and positions of the bottleneck."""

    bottleneck: Count = 8  # Houlsby's smallest useful size on BERT; the papers here state none
    places: Words = ("attn", "mlp")  # the original's two; "mlp" alone is Pfeiffer's


class Bottleneck(nn.Module):
    """x (B, N, D) -> up(act(down(x))) (B, N, D); zero at initialisation."""

    def __init__(self, width: int, size: int, act: Layer) -> None:
        super().__init__()
        check_tokens(size, "bottleneck")
        self.down, self.down_bias = (
            nn.Parameter(torch.empty(size, width)),
            nn.Parameter(torch.zeros(size)),
        )
        self.up, self.up_bias = (
            nn.Parameter(torch.zeros(width, size)),
            nn.Parameter(torch.zeros(width)),
        )
        self.act = act

    def reset(self, generator: torch.Generator) -> None:
        uniform_(self.down, self.down.shape[1] ** -0.5, generator)
        for parameter in (self.down_bias, self.up, self.up_bias):
            nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(self.act(F.linear(x, self.down, self.down_bias)), self.up, self.up_bias)


class Method(base.Method):
    """Trains one bottleneck per position and block."""

    families = ("vit",)
    inside = True
    start = 0

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        for place in settings.places:
            choose("place of Adapter", place, PLACES)
        if not settings.places:
            raise BadInput(f"give at least one place of: {', '.join(PLACES)}.")
        self.adapters = nn.ModuleDict(
            {
                f"{place}_{index}": Bottleneck(backbone.width, settings.bottleneck, F.gelu)
                for index in range(backbone.depth)
                for place in settings.places
            }
        )

    def reset(self, generator: torch.Generator) -> None:
        for adapter in self.adapters.values():
            adapter.reset(generator)  # type: ignore[operator]

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        key = f"{name}_{index}"
        return y + self.adapters[key](y) if key in self.adapters else y
