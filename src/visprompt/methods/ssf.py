"""SSF: learned scale and shift after each layer, y = gamma * layer(x) + beta (Lian et al. 2022)."""

from dataclasses import dataclass

import torch
from torch import nn

from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import base


@dataclass(frozen=True)
class Settings:
    """No settings: scale and shift after the patch embedding, every linear layer and every norm."""


class Method(base.Method):
    """Trains gamma, initially 1, and beta, initially 0, for every unit of every layer.

    The original draws them with a standard deviation of 0.02 around these values; here training
    starts at the linear probe.
    """

    families = ("vit",)
    inside = True

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.scales, self.shifts = nn.ParameterDict(), nn.ParameterDict()
        for (index, name), layer in backbone.layers().items():
            self.scales[f"{name}_{index}"] = nn.Parameter(torch.ones(len(layer.weight)))
            self.shifts[f"{name}_{index}"] = nn.Parameter(torch.zeros(len(layer.weight)))

    def reset(self, generator: torch.Generator) -> None:
        for scale, shift in zip(self.scales.values(), self.shifts.values(), strict=True):
            nn.init.ones_(scale)
            nn.init.zeros_(shift)

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        key = f"{name}_{index}"
        return layer(x) * self.scales[key] + self.shifts[key] if key in self.scales else layer(x)

    def merge(self, backbone: Backbone) -> None:
        with torch.no_grad():
            for (index, name), layer in backbone.layers().items():
                scale, shift = self.scales[f"{name}_{index}"], self.shifts[f"{name}_{index}"]
                layer.weight *= scale.view(-1, *[1] * (layer.weight.ndim - 1))
                if layer.bias is None:
                    layer.bias = nn.Parameter(torch.zeros_like(shift))
                layer.bias.mul_(scale).add_(shift)
