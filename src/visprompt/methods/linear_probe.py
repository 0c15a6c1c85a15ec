"""Linear probe: only the head is trained, on the frozen backbone's pooled features."""

from dataclasses import dataclass

from ..models.backbones import Backbone
from . import base


@dataclass(frozen=True)
class Settings:
    """No settings."""


class Method(base.Method):
    """Adds nothing; everything up to the pooled features is constant."""

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.start = backbone.depth
