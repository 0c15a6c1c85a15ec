"""NORM-TUNE: trains the scales and shifts of all normalisation layers (AP Sec. 3, Eq. A3)."""

from dataclasses import dataclass

from torch import nn

from ..models.backbones import Backbone
from . import base


@dataclass(frozen=True)
class Settings:
    """No settings: AP's Section 6.1 tunes all normalisation layers."""


class Method(base.Method):
    """Trains gamma and beta of every BatchNorm or LayerNorm in a copy of the backbone."""

    trains_backbone = True

    def trained(self, backbone: Backbone) -> list[nn.Parameter]:
        norms = (nn.LayerNorm, nn.modules.batchnorm._BatchNorm)
        return [
            value
            for module in backbone.modules()
            if isinstance(module, norms)
            for value in module.parameters()
        ]
