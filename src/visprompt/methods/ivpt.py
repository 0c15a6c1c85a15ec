"""iVPT: CDC with dynamic aggregation (DA, Eq. 5-6) and attentive reinforcement (AR, Eq. 14-15)."""

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import Count
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import Layer
from . import cdc
from .prompts import check_tokens


@dataclass(frozen=True)
class Settings:
    """Number of prompts, and which of CDC, DA and AR are used."""

    prompt_tokens: Count = 10  # N, "good choice for initialization" (Sec. 4.3)
    salient_tokens: Count = 10  # k, likewise
    cdc: str = "adjacent"  # Eq. 4; "all" is vanilla CDC, "none" leaves out CDC and with it DA
    da: bool = True  # weights gamma on the connections (Eq. 5-6)
    ar: str = "top-k"  # "all" adds a prompt to every image token (Table 4), "none" leaves AR out
    form: str = "keys and values"  # equal to "concatenate", the plain definition, and faster


class Method(cdc.Method):
    """Trains N prompts per block, weights gamma (N, N) per connection, and k prompts P_re.

    Every block but the last has P_re after it. gamma starts at the identity and P_re at zero, so
    training starts at CDC; the paper states no initialisation. Salience is the class token's row of
    attention, averaged over heads; a ViT without class token takes the mean of its patches' rows.
    """

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        choose("ar", settings.ar, ["top-k", "all", "none"])
        self.reinforce, self.ranks = None, None
        if settings.ar != "none":
            if not backbone.is_vit:
                raise BadInput(
                    f"AR follows the class token's attention; {backbone.name} has none: "
                    f"give ar='none'."
                )
            self.patches, self.has_class_token = (
                backbone.shapes()[0][0] - backbone.prefix,
                backbone.has_class_token,
            )
            salient = (
                check_tokens(settings.salient_tokens, "salient_tokens")
                if settings.ar == "top-k"
                else self.patches
            )
            if salient > self.patches:
                raise BadInput(
                    f"salient_tokens must be 1 to {self.patches}, the number of patches, "
                    f"not {salient}."
                )
            self.reinforce = nn.Parameter(torch.empty(backbone.depth - 1, salient, backbone.width))
        connected = [index for index, first in enumerate(self.first) if not first]
        if settings.cdc == "none" or not settings.da:
            connected = []
        tokens = settings.prompt_tokens
        self.gamma = nn.ParameterDict(
            {str(index): nn.Parameter(torch.empty(tokens, tokens)) for index in connected}
        )

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        for gamma in self.gamma.values():
            nn.init.eye_(gamma)
        if self.reinforce is not None:
            nn.init.zeros_(self.reinforce)

    def aggregate(self, index: int, before: torch.Tensor) -> torch.Tensor:
        return self.gamma[str(index)] @ before if len(self.gamma) else before  # Eq. 6

    def reinforces(self, index: int) -> bool:
        """Whether image tokens leaving block `index` are changed: all blocks but the last."""
        return self.reinforce is not None and index < len(self.reinforce)

    @torch.no_grad()  # the choice has no gradient
    def observe(self, index: int, q: torch.Tensor, k: torch.Tensor) -> None:
        if self.reinforces(index) and self.settings.ar == "top-k":
            first = self.prefix + (0 if self.trims else self.settings.prompt_tokens)
            q = q[:, :, :1] if self.has_class_token else q[:, :, first:]
            row = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1).mean((1, 2))
            image = row[:, first : first + self.patches]
            self.ranks = image.topk(self.reinforce.shape[1], -1).indices + self.prefix  # Eq. 14

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        x = super().around(index, name, layer, x)
        if name != "block" or not self.reinforces(index):
            return x
        prompts = self.reinforce[index].to(x.dtype).expand(len(x), -1, -1)
        if self.settings.ar == "all":
            return torch.cat([x[:, : self.prefix], x[:, self.prefix :] + prompts], 1)
        return x.scatter_add(1, self.ranks[..., None].expand_as(prompts), prompts)  # type: ignore[index]  # Eq. 15
