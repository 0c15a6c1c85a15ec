"""Prompt tokens: their number, their initialisation, and what deep prompt methods share.

VPT-Deep, SPT-Deep, iVPT and DA-VPT are deep. A prompt whose output is dropped is only a key and a
value: it needs no query, no attention output and no MLP, and its key and value are the same for
every image. They are computed once per batch.
"""

import math
from typing import Any

import torch
from torch import nn

from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import KeysValues, Layer, Project
from . import base


def check_tokens(count: int, name: str = "prompt_tokens") -> int:
    """Return a number of prompt tokens.

    Raises:
        BadInput: it is below 1; the message calls it `name`.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadInput(f"{name} must be a whole number of 1 or more, not {count!r}.")
    return count


def vpt_bound(backbone: Backbone) -> float:
    """VPT draws prompts uniformly within this bound: the Xavier bound of the patch embedding."""
    height, width = backbone.model.patch_embed.patch_size
    return math.sqrt(6 / (3 * height * width + backbone.model.embed_dim))


def uniform_(prompt: torch.Tensor, bound: float, generator: torch.Generator) -> None:
    """Fill a tensor in place with uniform numbers in [-bound, bound], the same on every device."""
    with torch.no_grad():
        prompt.copy_(
            (2 * torch.rand(prompt.shape, generator=generator, dtype=torch.float32) - 1) * bound
        )


class Shallow(base.Method):
    """N prompts enter block 0 after the class token, without position, and stay to the end."""

    families = ("vit",)
    start = 0

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.tokens, self.prefix = check_tokens(settings.prompt_tokens), backbone.prefix
        self.bound = vpt_bound(backbone)
        self.prompts = nn.Parameter(torch.empty(self.tokens, backbone.width))

    def reset(self, generator: torch.Generator) -> None:
        uniform_(self.prompts, self.bound, generator)

    def split(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, N, D) with prompts -> prefix (class token and registers), prompts, patches."""
        return x.tensor_split([self.prefix, self.prefix + self.tokens], 1)

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index > 0:
            return x
        return torch.cat(
            [x[:, : self.prefix], self.prompts.expand(len(x), -1, -1), x[:, self.prefix :]], 1
        )

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        before, _, patches = self.split(x)
        return torch.cat([before, patches], 1)  # prompts must not enter average pooling


class Deep(base.Method):
    """New prompts at every block, dropped after it: [x, _, E] = B([x, P, E]).

    SPT Eq. 6, iVPT Eq. 2, DA-VPT Eq. 1. `Settings` has `prompt_tokens` and may have `form`: "keys
    and values" (fast), or "concatenate", the definition, used for timing and for counting
    operations as the papers do.
    """

    families: tuple[str, ...] = ("vit", "swin")
    inside = True
    start = 0

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        self.prefix, self.bound = backbone.prefix, vpt_bound(backbone)
        self.form = choose("form", getattr(settings, "form", FORMS[0]), FORMS)
        self.trims = self.form == FORMS[0]
        if self.form == "concatenate" and not backbone.is_vit:
            raise BadInput(
                "form='concatenate' is written for ViTs; on a Swin use form='keys and values'."
            )
        self.prompts = nn.ParameterList(
            torch.empty(self.tokens_at(index), shape[-1])
            for index, shape in enumerate(backbone.shapes())
        )

    def tokens_at(self, index: int) -> int:
        """Number of prompts that enter block `index`."""
        return check_tokens(self.settings.prompt_tokens)

    def reset(self, generator: torch.Generator) -> None:
        for prompt in self.prompts:
            uniform_(prompt, self.bound, generator)

    def entering(self, index: int) -> torch.Tensor:
        """The prompts (N_p, D) that enter block `index`, before its first LayerNorm."""
        return self.prompts[index]

    def extra(self, index: int, project: Project) -> KeysValues | None:
        if self.form == "concatenate":
            return None
        _, k, v = project(self.entering(index))
        return k, v

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if name != "block" or self.form != "concatenate":
            return layer(x)
        prompts = self.entering(index).expand(len(x), -1, -1)
        x = layer(torch.cat([x[:, : self.prefix], prompts, x[:, self.prefix :]], 1))
        return torch.cat([x[:, : self.prefix], x[:, self.prefix + prompts.shape[1] :]], 1)


FORMS = ["keys and values", "concatenate"]
