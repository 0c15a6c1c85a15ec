"""AP: a learned perturbation of the activations entering one block (AP Sec. 3)."""

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Blocks, Count
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from . import base


@dataclass(frozen=True)
class Settings:
    """Position of the prompt delta, and how it is combined with the activations z.

    `block` is the index, from 0, of the block whose input is changed; a tuple puts one prompt on
    each of several blocks. `kind`: "add" z + delta (the paper's AP), "product" z * delta,
    "concatenate" [delta, z] (Table A3).
    """

    # None: third of a transformer, third-to-last of a ResNet (Sec. 6.1)
    block: int | Blocks | None = None
    kind: str = "add"
    prompt_tokens: Count = 8  # for "concatenate" only; the paper does not state its number


class Method(base.Method):
    """One delta per prompted block, with the shape of the activations: (N, D) or (C, H, W).

    Initialised so that nothing changes: zero for "add", one for "product"; "concatenate" starts
    small and random, because equal tokens would receive equal gradients.
    """

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        choose("kind of AP", settings.kind, ["add", "product", "concatenate"])
        if settings.kind == "concatenate" and not backbone.is_vit:
            raise BadInput(
                "AP by concatenation needs tokens; on a ResNet use kind='add' or kind='product'."
            )
        if settings.kind == "concatenate" and settings.prompt_tokens < 1:
            raise BadInput(f"prompt_tokens must be 1 or more, not {settings.prompt_tokens}.")
        block = settings.block
        if block is None:
            block = backbone.depth - 3 if backbone.family == "resnet" else 2
        self.at = sorted(set(block)) if isinstance(block, (tuple, list)) else [block]
        if not self.at or not all(isinstance(b, int) and 0 <= b < backbone.depth for b in self.at):
            raise BadInput(
                f"{backbone.name} has blocks 0 to {backbone.depth - 1}; AP cannot go at "
                f"block {block}."
            )
        self.start = self.at[0]
        self.prefix = backbone.prefix
        shapes = backbone.shapes()
        concatenate = settings.kind == "concatenate"
        self.prompts = nn.ParameterList(
            torch.empty((settings.prompt_tokens, backbone.width) if concatenate else shapes[b])
            for b in self.at
        )

    def reset(self, generator: torch.Generator) -> None:
        for prompt in self.prompts:
            if self.settings.kind == "concatenate":
                with torch.no_grad():
                    prompt.copy_(torch.randn(prompt.shape, generator=generator) * 0.02)
            else:
                nn.init.constant_(prompt, 1.0 if self.settings.kind == "product" else 0.0)

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index not in self.at:
            return x
        prompt = self.prompts[self.at.index(index)]
        if self.settings.kind == "add":
            return x + prompt
        if self.settings.kind == "product":
            return x * prompt
        # Behind the class token, as VPT orders them.
        return torch.cat(
            [x[:, : self.prefix], prompt.expand(len(x), -1, -1), x[:, self.prefix :]], dim=1
        )

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        if self.settings.kind != "concatenate":
            return x
        added = len(self.at) * self.settings.prompt_tokens
        # prompts must not enter average pooling
        return torch.cat([x[:, : self.prefix], x[:, self.prefix + added :]], dim=1)
