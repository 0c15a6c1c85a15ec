"""Linear probe: only the head is trained, on the frozen backbone's pooled features."""

from dataclasses import dataclass

from . import base


@dataclass(frozen=True)
class Settings:
    """No settings."""


class Method(base.Method):
    """Adds nothing; everything up to the pooled features is constant."""

    def __init__(self, backbone, settings, num_classes):
        super().__init__(backbone, settings, num_classes)
        self.start = backbone.depth
