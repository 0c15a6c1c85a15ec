"""E2VPT: prompts at every block, key-value prompts inside attention, and pruning.

Han et al. 2023; iVPT Table 1. Attention sees [K, P_K] and [V, P_V] with P_K = P_V. After a first
training, the tokens and segments whose masks have the smallest gradients are dropped; the rest is
trained again from its initialisation (rewinding).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from ..checks import Count, Share
from ..errors import BadInput
from ..models.backbones import Backbone
from ..models.blocks import KeysValues, Project
from . import prompts


@dataclass(frozen=True)
class Settings:
    """Numbers of prompts and key-value prompts, and how much is pruned."""

    prompt_tokens: Count = 10  # as for VPT-Deep and iVPT
    key_value_tokens: Count = 5  # the papers here state none
    segments: Count = 16  # pieces of a token that can be dropped apart, as in the reference code
    # share of the prompts of a block; the reference code tries 0.1 to 0.9
    prune_tokens: Share = 0.5
    prune_segments: Share = 0.5  # share of the segments of a block
    kept_at_least: Count = 4  # tokens, and segments a token, that stay in any case


class Method(prompts.Deep):
    """Trains N prompts of width D and M key-value prompts of width D per block."""

    families = ("vit",)
    token_mask: torch.Tensor
    segment_mask: torch.Tensor

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        for name in ("prune_tokens", "prune_segments"):
            if not 0 <= getattr(settings, name) < 1:
                raise BadInput(f"{name} is a share, 0 to below 1, not {getattr(settings, name)}.")
        if backbone.width % prompts.check_tokens(settings.segments, "segments"):
            raise BadInput(
                f"segments must divide the width {backbone.width}; {settings.segments} does not."
            )
        depth, tokens = backbone.depth, settings.prompt_tokens
        count = prompts.check_tokens(settings.key_value_tokens, "key_value_tokens")
        self.key_values = nn.Parameter(torch.empty(depth, count, backbone.width))
        self.register_buffer("token_mask", torch.ones(depth, tokens))
        self.register_buffer("segment_mask", torch.ones(depth, tokens, settings.segments))
        self.importance, self.leaves = [torch.zeros_like(mask) for mask in self.masks()], []

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        prompts.uniform_(self.key_values, self.bound, generator)
        self.importance = [torch.zeros_like(mask) for mask in self.masks()]
        for mask in self.masks():
            mask.fill_(1)

    def train(self, mode: bool = True) -> "Method":
        """While training, masks are leaves whose gradients are summed; a hook of a leaf is outside
        the block loop, which then compiles as one graph."""
        self.leaves = [mask.clone().requires_grad_() for mask in self.masks() if mode]
        for leaf, importance in zip(self.leaves, self.importance):
            leaf.register_post_accumulate_grad_hook(partial(self.add, importance))
        return super().train(mode)

    def masks(self) -> list[torch.Tensor]:
        return [self.token_mask, self.segment_mask]

    def entering(self, index: int) -> torch.Tensor:
        tokens, segments = self.token_mask[index], self.segment_mask[index]
        if self.training and torch.is_grad_enabled():
            tokens, segments = (self.watched(kind, index) for kind in range(2))
        whole = segments.repeat_interleave(
            self.prompts[index].shape[1] // self.settings.segments, 1
        )
        return self.prompts[index] * whole * tokens[:, None]

    def watched(self, kind: int, index: int) -> torch.Tensor:
        """A mask whose absolute gradient is summed during training, as its importance."""
        return self.leaves[kind][index]

    @staticmethod
    def add(importance: torch.Tensor, mask: torch.Tensor) -> None:
        """Add a step's gradient to a mask's importance: how much the loss would change without."""
        importance += mask.grad.abs()  # type: ignore[union-attr]
        mask.grad = None

    def extra(self, index: int, project: Project) -> KeysValues | None:
        _, k, v = project(self.entering(index))
        own = self.key_values[index].view(1, -1, k.shape[1], k.shape[3]).transpose(1, 2)
        return torch.cat([k, own], 2), torch.cat([v, own], 2)

    def prune(self) -> Callable[[], None] | None:
        settings, done = self.settings, any((mask == 0).any() for mask in self.masks())
        shares = (settings.prune_tokens, settings.prune_segments)
        if done or not any(shares):
            return None
        chosen = [self.kept(scores, share) for scores, share in zip(self.importance, shares)]

        def apply() -> None:
            for mask, kept in zip(self.masks(), chosen):
                mask.copy_(kept)

        return apply

    def kept(self, importance: torch.Tensor, share: float) -> torch.Tensor:
        """1 for the most important of the last dimension (at least `kept_at_least`), else 0."""
        count = importance.shape[-1]
        stays = max(min(count, self.settings.kept_at_least), round(count * (1 - share)))
        places = importance.topk(stays, -1).indices
        return torch.zeros_like(importance).scatter(-1, places, 1)
