"""ProVP: prompts are kept and each block adds new ones, P^l + T^{l-1}(P).

Xu et al. 2023; iVPT Sec. 4.3 (B).
"""

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Count
from ..models.backbones import Backbone
from . import prompts


@dataclass(frozen=True)
class Settings:
    """Number of prompts per block."""

    prompt_tokens: Count = 10  # as for VPT-Deep and iVPT


class Method(prompts.Shallow):
    """Trains N prompts per block: block 0's enter it, others are added to the prompts' outputs."""

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.added = nn.Parameter(torch.empty(backbone.depth - 1, self.tokens, backbone.width))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        prompts.uniform_(self.added, self.bound, generator)

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index == 0:
            return super().before_block(0, x)
        before, came_out, patches = self.split(x)
        return torch.cat([before, came_out + self.added[index - 1], patches], 1)
