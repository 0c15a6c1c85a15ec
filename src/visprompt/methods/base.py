"""What a method is, and the model that joins backbone, method and head."""

import copy

import torch
from torch import nn

from ..backbones import Backbone


class Method(nn.Module):
    """What a method adds to a frozen backbone; the base class adds nothing.

    A subclass is named `Method`, has a frozen dataclass `Settings` beside it, and overrides what it needs.

    Attributes:
        start: index of the first block whose input, weights or prompts are trained. Everything below is
            constant and may be cached. -1 means the image or the stem, depth means the pooled features.
        trains_backbone: whether it changes the backbone's own parameters.
    """

    start = -1
    trains_backbone = False

    def __init__(self, backbone: Backbone, settings):
        super().__init__()
        self.settings = settings

    def reset(self, generator: torch.Generator) -> None:
        """Set the method's own parameters to their start."""

    def trained(self, backbone: Backbone) -> list[nn.Parameter]:
        """The backbone's parameters that it trains."""
        return []

    def change_images(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> (B, 3, H, W): what it does to the image."""
        return images

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        """What it does to the activations entering block `index`: (B, N, D) or (B, C, H, W)."""
        return x

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        """What it does to the activations leaving the last block."""
        return x


class TunedModel(nn.Module):
    """Backbone, method and a linear head, as one model from images to logits."""

    def __init__(self, backbone: Backbone, slug: str, method: Method, num_classes: int):
        super().__init__()
        self.slug, self.num_classes, self.method = slug, num_classes, method
        self.__dict__["source"] = backbone  # not a submodule: it stays frozen and is shared between models
        self.head = nn.Linear(backbone.width, num_classes, device=device_of(backbone))
        self.register_buffer("feature_mean", torch.zeros(backbone.width, device=self.head.weight.device))
        self.register_buffer("feature_scale", torch.ones(backbone.width, device=self.head.weight.device))
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Back to the untrained state: the backbone's weights, the method's start, a small random head."""
        generator = torch.Generator().manual_seed(seed)
        self.backbone = copy.deepcopy(self.source) if self.method.trains_backbone else self.source
        for parameter in self.method.trained(self.backbone):
            parameter.requires_grad_(True)
        self.eval()
        if self.head.weight.is_meta:
            return
        self.method.reset(generator)
        with torch.no_grad():
            self.head.weight.copy_(torch.randn(self.head.weight.shape, generator=generator) * 0.01)
            self.head.bias.zero_()
            self.feature_mean.zero_()
            self.feature_scale.fill_(1)

    def below(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> what enters block `method.start`; constant during training, so cacheable."""
        backbone, start = self.backbone, self.method.start
        if start < 0:
            return images
        x = backbone.run(backbone.stem(images), stop=start)
        return backbone.pool(x) if start == backbone.depth else x

    def above(self, x: torch.Tensor) -> torch.Tensor:
        """What `below` returns -> logits (B, num_classes)."""
        return self.head((self.features(x) - self.feature_mean) / self.feature_scale)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What `below` returns -> pooled features (B, D)."""
        backbone, method = self.backbone, self.method
        if method.start == backbone.depth:
            return x
        if method.start < 0:
            x = backbone.stem(method.change_images(x))
        return backbone.pool(method.after_blocks(backbone.run(x, method, start=max(method.start, 0))))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) normalised -> logits (B, num_classes)."""
        return self.above(self.below(images))

    def method_parameters(self) -> list[nn.Parameter]:
        """What is trained besides the head."""
        return [*self.method.parameters(), *self.method.trained(self.backbone)]


def device_of(module: nn.Module) -> torch.device:
    """Where a module's parameters lie."""
    return next(module.parameters()).device
