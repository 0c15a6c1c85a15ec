"""EXPRESS: shallow prompts with residual prompts inside every block.

Das et al. 2023; iVPT Sec. 2.3 and 4.3 (C). iVPT says that the residual prompts come before
LayerNorm, QKV projection and self-attention (Sec. 2.3, Fig. 3), and elsewhere that they come after
them (Sec. 4.3). The setting `place` chooses.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..checks import Count
from ..errors import choose
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import prompts

# place -> the layers whose input ("before") or output ("after") receives residual prompts
LAYERS = {"before": ["norm1", "qkv", "attention"], "after": ["norm1", "qkv", "proj"]}


@dataclass(frozen=True)
class Settings:
    """Number of prompts, and where the residuals are added."""

    prompt_tokens: Count = 10  # as for VPT-Deep and iVPT
    place: str = "before"  # Sec. 2.3 and Fig. 3 of iVPT, two places against one


class Method(prompts.Shallow):
    """Trains N prompts at the input, and three residuals per prompt and block.

    A residual between projection and self-attention has width 3D: it is added to query, key and
    value. The one before LayerNorm enters the branch, not the skip connection; the papers leave
    that open. Residuals start at zero, so training starts at VPT-Shallow.
    """

    inside = True

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        choose("place", settings.place, LAYERS)
        widths = [1, 1, 3] if settings.place == "before" else [1, 3, 1]
        self.residuals = nn.ParameterList(
            torch.empty(backbone.depth, self.tokens, width * backbone.width) for width in widths
        )

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        for residual in self.residuals:
            nn.init.zeros_(residual)

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if name not in ("norm1", "qkv", "proj"):
            return layer(x)
        first, second, third = (residual[index] for residual in self.residuals)
        if self.settings.place == "after":
            return self.add({"norm1": first, "qkv": second, "proj": third}[name], layer(x))
        if name == "norm1":
            return layer(self.add(first, x))
        if name == "qkv":  # what leaves the projection is what enters self-attention
            return self.add(third, layer(self.add(second, x)))
        return layer(x)

    def add(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Add a residual to the prompts among x (B, N, D); a trimmed block may have none left."""
        if x.shape[1] == 1:
            return x
        return x + F.pad(residual, (0, 0, self.prefix, x.shape[1] - self.prefix - self.tokens))
