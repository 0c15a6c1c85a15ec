"""DA-VPT+: DA-VPT, efficient bias tuning and a learned class token (DA-VPT Sec. 2.5, Table 4)."""

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Words
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import da_vpt
from .bias import Shifts


@dataclass(frozen=True)
class Settings(da_vpt.Settings):
    """DA-VPT's settings, and which parts of the backbone are trained."""

    # "the most efficient part" (Sec. 2.5); of these the key bias does nothing
    biases: Words = ("key", "value")
    class_token: bool = True  # "combined with Efficient Bias for simplicity" (Table 4)


class Method(da_vpt.Method):
    """Trains DA-VPT's prompts, the chosen biases and an offset of the class token."""

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.shifts = Shifts(backbone, settings.biases)
        self.start = -1 if "patch_embed" in settings.biases else 0
        learns = settings.class_token and backbone.has_class_token
        self.class_shift = nn.Parameter(torch.empty(backbone.width)) if learns else None

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.shifts.reset()
        if self.class_shift is not None:
            nn.init.zeros_(self.class_shift)

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index == 0 and self.class_shift is not None:
            x = torch.cat([x[:, :1] + self.class_shift, x[:, 1:]], 1)
        return super().before_block(index, x)

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return self.shifts(index, name, super().around(index, name, layer, x))
