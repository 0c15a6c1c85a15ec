"""VPT-Deep: new prompt tokens at every block, dropped after it.

SPT Eq. 6, iVPT Eq. 2, DA-VPT Eq. 1.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..checks import Blocks, Count
from ..errors import BadInput
from ..models.backbones import Backbone
from ..models.blocks import KeysValues, Layer, Project
from . import prompts


@dataclass(frozen=True)
class Settings:
    """Number of prompts per block, the prompted blocks, and how they are computed."""

    # iVPT's "good choice for initialization"; VPT itself searches 1 to 200 per task
    prompt_tokens: Count = 10
    # None: every block; else these alone (AP Figure A2 goes one by one)
    block: int | Blocks | None = None
    form: str = "keys and values"  # equal to "concatenate", the plain definition, and faster


class Method(prompts.Deep):
    """Trains N prompts of width D per block."""

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        block = range(backbone.depth) if settings.block is None else settings.block
        self.at = [block] if isinstance(block, int) else sorted(set(block))
        if not self.at or not all(isinstance(b, int) and 0 <= b < backbone.depth for b in self.at):
            raise BadInput(
                f"{backbone.name} has blocks 0 to {backbone.depth - 1}; VPT cannot go at "
                f"block {block}."
            )
        self.prompts = nn.ParameterList(self.prompts[index] for index in self.at)
        self.start = self.at[0]

    def entering(self, index: int) -> torch.Tensor:
        return self.prompts[self.at.index(index)]

    def extra(self, index: int, project: Project) -> KeysValues | None:
        return super().extra(index, project) if index in self.at else None

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return super().around(index, name, layer, x) if index in self.at else layer(x)
