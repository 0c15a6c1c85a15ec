"""Gate-VPT: gates decide which block's output the prompts carry on.

Yoo et al. 2023; SPT Table 2, iVPT Table 6. After block l the prompts are g P_out + (1 - g) P_in
with g = sigmoid(gate); block l's attention scores are divided by a learned temperature.
"""

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Count, Number, Positive
from ..errors import BadInput
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import prompts


@dataclass(frozen=True)
class Settings:
    """Number of prompts, the gates' initial value, and the range of the temperature."""

    prompt_tokens: Count = 50  # like VPT-Shallow here
    # g starts at sigmoid(-gate), near "skip the block", as the reference code does
    gate: Number = 10.0
    lowest: Positive = 0.01  # bounds of the temperature in the reference code
    highest: Positive = 10.0  # likewise


class Method(prompts.Shallow):
    """Trains N prompts at the input, one gate per block boundary, and one temperature per block.

    Temperatures start at 1.
    """

    inside = True

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        if not 0 < settings.lowest < 1 < settings.highest:
            raise BadInput(
                f"write lowest < 1 < highest, with lowest above 0, not {settings.lowest}, "
                f"{settings.highest}."
            )
        self.gates = nn.Parameter(torch.empty(backbone.depth - 1))
        self.temperatures = nn.Parameter(torch.empty(backbone.depth))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        nn.init.constant_(self.gates, -self.settings.gate)
        nn.init.ones_(self.temperatures)

    def bounded(self, temperature: torch.Tensor) -> torch.Tensor:
        """Clamp a temperature; the gradient passes, so that one out of range can return."""
        return (
            temperature
            + (
                temperature.clamp(self.settings.lowest, self.settings.highest) - temperature
            ).detach()
        )

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        if name == "qkv":  # scores are q k, so q carries their temperature
            q, rest = y.tensor_split([y.shape[-1] // 3], -1)
            return torch.cat([q / self.bounded(self.temperatures[index]), rest], -1)
        # behind the last block there is nothing to carry on
        if name != "block" or index == len(self.gates):
            return y
        before, came_out, patches = self.split(y)
        gate = self.gates[index].sigmoid()
        return torch.cat([before, gate * came_out + (1 - gate) * self.split(x)[1], patches], 1)
