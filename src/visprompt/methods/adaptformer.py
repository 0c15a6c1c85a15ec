"""AdaptFormer: a bottleneck parallel to the MLP, MLP(LN(x)) + s * up(ReLU(down(LN(x)))).

Chen et al. 2022, Eq. 3-4.
"""

from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F

from ..checks import Count, Positive
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

    def __init__(self, backbone, settings, num_classes):
        super().__init__(backbone, settings, num_classes)
        self.adapters = nn.ModuleList(
            Bottleneck(backbone.width, settings.bottleneck, F.relu) for _ in range(backbone.depth)
        )

    def reset(self, generator):
        for adapter in self.adapters:
            adapter.reset(generator)

    def around(self, index, name, layer, x):
        return (
            layer(x) + self.settings.scale * self.adapters[index](x) if name == "mlp" else layer(x)
        )
