"""Full fine-tuning: every parameter of the backbone is trained."""

from dataclasses import dataclass

from . import base


@dataclass(frozen=True)
class Settings:
    """Nothing to choose."""


class Method(base.Method):
    """Trains a copy of the backbone. timm's own classifier is not part of it."""

    trains_backbone = True

    def trained(self, backbone):
        return [
            value
            for key, value in backbone.model.named_parameters()
            if not key.startswith(("head.", "fc."))
        ]
