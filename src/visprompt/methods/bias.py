"""BIAS: trains the biases of the network's linear and normalisation layers.

AP Sec. 6.1, DA-VPT Sec. 2.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Words
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import base

# category -> the layer that holds it; queries, keys and values are thirds of timm's fused qkv
CATEGORIES = {
    "patch_embed": "patch_embed",
    "norm1": "norm1",
    "query": "qkv",
    "key": "qkv",
    "value": "qkv",
    "proj": "proj",
    "norm2": "norm2",
    "fc1": "fc1",
    "fc2": "fc2",
    "norm": "norm",
    "fc_norm": "fc_norm",
}


@dataclass(frozen=True)
class Settings:
    """The layers whose biases are trained."""

    categories: Words = tuple(CATEGORIES)  # all of them, as BitFit and VPT's BIAS baseline do


class Shifts(nn.Module):
    """Trained changes of the biases: one difference per (block, layer), zero at initialisation.

    A change of the key bias shifts all scores of a query alike, so softmax, and every output,
    ignores it.
    """

    def __init__(self, backbone: Backbone, categories: Sequence[str]) -> None:
        super().__init__()
        for category in categories:
            choose("bias category", category, CATEGORIES)
        if not categories:
            raise BadInput(f"give at least one bias category of: {', '.join(CATEGORIES)}.")
        thirds = [category in categories for category in ("query", "key", "value")]
        self.parts = nn.ParameterDict()
        self.thirds = torch.tensor(thirds, device="cpu").nonzero().flatten().tolist()
        wanted = {CATEGORIES[category] for category in categories}
        for (index, name), layer in backbone.layers().items():
            if name in wanted and getattr(layer, "bias", None) is not None:
                width = (
                    len(layer.bias) // 3 * len(self.thirds) if name == "qkv" else len(layer.bias)
                )
                self.parts[f"{name}_{index}"] = nn.Parameter(torch.zeros(width))

    def reset(self) -> None:
        for part in self.parts.values():
            nn.init.zeros_(part)

    def whole(self, index: int, name: str) -> torch.Tensor | None:
        """The difference of one layer's bias; None if that bias is not trained."""
        key = f"{name}_{index}"
        if key not in self.parts:
            return None
        part = self.parts[key]
        if name != "qkv" or len(self.thirds) == 3:
            return part
        pieces = dict(zip(self.thirds, part.chunk(len(self.thirds))))
        return torch.cat(
            [pieces.get(third, torch.zeros_like(pieces[self.thirds[0]])) for third in range(3)]
        )

    def forward(self, index: int, name: str, x: torch.Tensor) -> torch.Tensor:
        """Add the difference to the output x of a layer."""
        shift = self.whole(index, name)
        return x if shift is None else x + shift


class Method(base.Method):
    """Trains the biases of the chosen layers."""

    families = ("vit",)
    inside = True

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.shifts = Shifts(backbone, settings.categories)
        self.start = -1 if "patch_embed" in settings.categories else 0

    def reset(self, generator: torch.Generator) -> None:
        self.shifts.reset()

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return self.shifts(index, name, layer(x))

    def merge(self, backbone: Backbone) -> None:
        with torch.no_grad():
            for (index, name), layer in backbone.layers().items():
                shift = self.shifts.whole(index, name)
                if shift is not None:
                    layer.bias += shift
