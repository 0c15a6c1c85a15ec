"""The order of norm and mean on a ViT that averages its tokens.

`Backbone` norms the tokens, then averages them. A view of it with another order shares its weights,
name and fingerprint.
"""

import copy

import torch
from torch import nn

from .backbones import Backbone
from .blocks import NO_HOOKS

NORM_FIRST, MEAN_FIRST, FRESH_NORM = "norm, then mean", "mean, then norm", "mean, then a fresh norm"


class MeanFirst(Backbone):
    """A ViT that averages its tokens, then norms the mean (SPT, Gate-VPT, AdaptFormer)."""

    order, origin = MEAN_FIRST, None

    def pool(self, x: torch.Tensor, method=NO_HOOKS) -> torch.Tensor:
        model = self.model
        x = method.around(self.depth, "norm", model.norm, model.pool(x))
        return method.around(self.depth, "fc_norm", model.fc_norm, x)


class FreshNorm(MeanFirst):
    """As `MeanFirst`, with an untrained norm in the place of the checkpoint's (VPT)."""

    order = FRESH_NORM

    @property
    def fingerprint(self) -> str:
        """The checkpoint's fingerprint, while the norm is still fresh."""
        own = self.model.norm
        if (own.weight == 1).all() and (own.bias == 0).all():
            self.model.norm = self.origin.model.norm  # type: ignore[attr-defined]
        try:
            return super().fingerprint
        finally:
            self.model.norm = own


KINDS: dict[str, type[MeanFirst]] = {kind.order: kind for kind in (MeanFirst, FreshNorm)}


def averages(backbone: Backbone) -> bool:
    """Whether a backbone norms and averages its tokens, so that there is an order to choose."""
    model = backbone.model
    averaging = backbone.is_vit and model.global_pool == "avg"
    return averaging and not isinstance(model.norm, nn.Identity)


def order_of(backbone: Backbone) -> str:
    """The order in which a backbone pools; `NORM_FIRST` of one that has no choice."""
    return getattr(backbone, "order", NORM_FIRST)


def ordered(backbone: Backbone, order: str) -> Backbone:
    """The backbone, or a view of it, that pools in this order; itself where there is no choice."""
    if order == order_of(backbone) or not averages(backbone):
        return backbone
    origin = getattr(type(backbone), "origin", backbone)
    if order == NORM_FIRST:
        return origin
    view = shallow(origin)
    # to records and saved files the view is the backbone that it shows
    marks = {"__module__": Backbone.__module__, "plain": Backbone, "origin": origin}
    view.__class__ = type("Backbone", (KINDS[order],), marks)
    if order == FRESH_NORM:
        view.model = shallow(origin.model)
        view.model.norm = copy.deepcopy(origin.model.norm)
        nn.init.ones_(view.model.norm.weight)
        nn.init.zeros_(view.model.norm.bias)
    return view


def shallow(module: nn.Module):
    """A copy of a module that shares its tensors and submodules, which can be replaced in it."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin
