"""Full fine-tuning: every parameter of the backbone is trained."""

from dataclasses import dataclass

from torch import nn

from ..models.backbones import Backbone
from . import base


@dataclass(frozen=True)
class Settings:
    """No settings."""


class Method(base.Method):
    """Trains a copy of the backbone, without timm's own classifier."""

    trains_backbone = True

    def trained(self, backbone: Backbone) -> list[nn.Parameter]:
        return [
            value
            for key, value in backbone.model.named_parameters()
            if not key.startswith(("head.", "fc."))
        ]
