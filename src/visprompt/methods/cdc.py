"""CDC: a block's prompts are its own plus those of the block before (iVPT Eq. 3-4).

"Vanilla" CDC adds those of all blocks before.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ..checks import Count
from ..errors import choose
from ..models.backbones import Backbone
from . import prompts

CONNECTIONS = ["adjacent", "all", "none"]


@dataclass(frozen=True)
class Settings:
    """Number of prompts, and which earlier ones are added."""

    prompt_tokens: Count = 10  # N, iVPT's "good choice for initialization"
    cdc: str = "adjacent"  # Eq. 4; "all" is iVPT's vanilla CDC (Sec. 4.3 (D)), "none" is VPT-Deep
    form: str = "keys and values"  # equal to "concatenate", the plain definition, and faster


class Method(prompts.Deep):
    """Trains N prompts of width D per block, as VPT-Deep.

    In a Swin, prompts of stages of different width cannot be added: the first block of a stage has
    only its own.
    """

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        choose("cdc", settings.cdc, CONNECTIONS)
        self.first = [
            index == 0 or prompt.shape != self.prompts[index - 1].shape
            for index, prompt in enumerate(self.prompts)
        ]

    def entering(self, index: int) -> torch.Tensor:
        if self.first[index] or self.settings.cdc == "none":
            return self.prompts[index]
        before = self.entering(index - 1) if self.settings.cdc == "all" else self.prompts[index - 1]
        return self.prompts[index] + self.aggregate(index, before)

    def aggregate(self, index: int, before: torch.Tensor) -> torch.Tensor:
        """The prompts of the block before as they enter block `index`; iVPT's DA weights them."""
        return before
