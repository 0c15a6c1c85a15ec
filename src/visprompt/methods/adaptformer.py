"""AdaptFormer: a bottleneck parallel to the MLP, MLP(LN(x)) + s * up(ReLU(down(LN(x)))).

Chen et al. 2022, Eq. 3-4.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..checks import Count, Positive
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import base
from .adapter import Bottleneck


@dataclass(frozen=True)
class Settings:
    """Width and scale of the bottleneck."""

    bottleneck: Count = 64  # the original's AdaptFormer-64
    scale: Positive = 0.1  # the original's s for images


class Method(base.Method):
    """Trains one bottleneck per block.

    Its input is the MLP's input, after the LayerNorm, as in the original's equation; the released
    code feeds it the tokens before the LayerNorm.
    """

    families = ("vit",)
    inside = True
    start = 0

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.adapters = nn.ModuleList(
            Bottleneck(backbone.width, settings.bottleneck, F.relu) for _ in range(backbone.depth)
        )

    def reset(self, generator: torch.Generator) -> None:
        for adapter in self.adapters:
            adapter.reset(generator)  # type: ignore[operator]

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return (
            layer(x) + self.settings.scale * self.adapters[index](x) if name == "mlp" else layer(x)
        )
