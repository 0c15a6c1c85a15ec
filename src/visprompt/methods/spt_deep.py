"""SPT-Deep: VPT-Deep whose prompts are initialised with the tokens entering their block.

SPT Sec. 3.3-3.4, Eq. 13.
"""

from dataclasses import dataclass

import torch

from ..checks import Count, Rounds
from ..models.backbones import Backbone
from . import prompts
from .token_starts import check_start, start_prompts


@dataclass(frozen=True)
class Settings:
    """Number and initialisation of prompts; as VPT's without training images (`tune` has them)."""

    prompt_tokens: Count = 20  # the paper's number for every task
    # the paper's choice after Table 4; or "mean", "max", "k-means", "uniform" (VPT)
    start: str = "random"
    source: str = "same"  # tokens of the prompt's own block; "first" and "last" are Table S2's
    frozen: bool = False  # True trains the head alone (Table 4a)
    # number of training images to draw from; None: all (for pooling, one batch of 32)
    images: Rounds | None = None
    iterations: Rounds = 50  # of k-means; it ends sooner when nothing moves
    form: str = "keys and values"  # equal to "concatenate", the plain definition, and faster


class Method(prompts.Deep):
    """Trains N prompts of width D per block."""

    families = ("vit",)

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        check_start(settings)
        self.prompts.requires_grad_(not settings.frozen)

    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        start_prompts(list(self.prompts), backbone, images, self.settings, self.bound, generator)
