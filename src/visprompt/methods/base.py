"""The base class of methods, and the model that joins backbone, method and head."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..chance import stream
from ..errors import BadInput
from ..models.backbones import Backbone
from ..models.blocks import Hooks
from ..models.structure import changed, describe, structure
from ..records.watch import Seen


class Method(Hooks, nn.Module):
    """What a method adds to a frozen backbone; the base class adds nothing.

    A subclass is named `Method`, has a frozen dataclass `Settings` beside it, and overrides what it
    needs of `blocks.Hooks` and of the functions below.

    Attributes:
        families: the backbone families that can carry it.
        inside: whether it acts inside a ViT's blocks, which then must be of timm's standard kind.
        start: index of the first block whose input, weights or prompts are trained. Everything
            below is constant and may be cached. -1 means the image or the stem, depth means the
            pooled features.
        trains_backbone: whether it changes the backbone's own parameters.
    """

    families: tuple[str, ...] = ("vit", "resnet", "swin")
    inside = False
    start = -1
    trains_backbone = False

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        super().__init__()
        self.settings = settings

    def reset(self, generator: torch.Generator) -> None:
        """Initialise the method's own parameters."""

    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        """Look at the normalised training images (n, 3, H, W) before the first step."""

    def trained(self, backbone: Backbone) -> list[nn.Parameter]:
        """The backbone's parameters that the method trains."""
        return []

    def change_images(self, images: torch.Tensor) -> torch.Tensor:
        """Change the images (B, 3, H, W) before the stem."""
        return images

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        """Change the activations that leave the last block."""
        return x

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | float:
        """A term for the training loss, from pooled features (B, D) and labels (B,)."""
        return 0

    def after_epoch(self) -> None:
        """Called at the end of each epoch."""

    def prune(self) -> Callable[[], None] | None:
        """Called after training: None, or a function that prunes; training is then repeated."""
        return None

    def merge(self, backbone: Backbone) -> None:
        """Write what was learned into the weights of a copy of the backbone.

        The copy then gives the same features without the method.

        Raises:
            BadInput: the method cannot be merged.
        """
        raise BadInput(
            "only lora, ssf, bias and the methods that train the backbone's own weights "
            "can be merged."
        )


class TunedModel(nn.Module):
    """Backbone, method and linear head: images (B, 3, H, W) -> logits (B, num_classes)."""

    # what it was last fitted to: "name", "class_names", "image_size", "resize"
    task: dict | None = None

    source: Backbone  # frozen and shared between models
    backbone: Backbone  # the source, or a copy that the method trains
    feature_mean: torch.Tensor
    feature_scale: torch.Tensor
    built: dict[str, str]
    made_by: Seen

    def __init__(self, backbone: Backbone, slug: str, method: Method, num_classes: int) -> None:
        super().__init__()
        self.slug, self.num_classes, self.method = slug, num_classes, method
        # not a submodule: it stays frozen and is shared between models
        self.__dict__["source"] = backbone
        self.head = nn.Linear(backbone.width, num_classes, device=device_of(backbone))
        self.register_buffer(
            "feature_mean", torch.zeros(backbone.width, device=self.head.weight.device)
        )
        self.register_buffer(
            "feature_scale", torch.ones(backbone.width, device=self.head.weight.device)
        )
        self.reset()
        self.__dict__["built"] = self.structure()

    def structure(self) -> dict[str, str]:
        """Classes, hooks and replaced methods of model, method and head, without the backbone."""
        return structure(self, {"backbone", "built", "task"}, attributes=False)

    @property
    def changes(self) -> str:
        """Twelve hex digits if the method differs from the one built for this slug, else ""."""
        own = getattr(type(self.method), "plain", type(self.method))
        known = f"{__package__}.{self.slug.replace('-', '_')}.Method"
        other = {} if describe(own) == known else {"method": describe(own)}
        return changed(self.built, self.structure() | other)

    def reset(self, seed: int = 0) -> None:
        """Back to the untrained state: backbone weights, method's and head's initialisation."""
        generator = stream(seed, "start")
        self.backbone = copy.deepcopy(self.source) if self.method.trains_backbone else self.source
        for parameter in self.method.trained(self.backbone):
            parameter.requires_grad_(True)
        self.eval()
        if self.head.weight.is_meta:
            return
        with torch.no_grad():  # the head first: with one seed it is the same for every method
            self.head.weight.copy_(torch.randn(self.head.weight.shape, generator=generator) * 0.01)
            self.head.bias.zero_()
            self.feature_mean.zero_()
            self.feature_scale.fill_(1)
        self.method.reset(generator)

    def below(self, images: torch.Tensor) -> torch.Tensor:
        """Images (B, 3, H, W) -> the input of block `method.start`, constant during training."""
        backbone, start = self.backbone, self.method.start
        if start < 0:
            return images  # the method acts on the image or in the stem
        x = backbone.run(backbone.stem(images), stop=start)
        return backbone.pool(x) if start == backbone.depth else x

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """Pooled features (B, D) -> logits (B, num_classes)."""
        return self.head((features - self.feature_mean) / self.feature_scale)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """The output of `below` -> pooled features (B, D)."""
        backbone, method = self.backbone, self.method
        if method.start == backbone.depth:
            return x
        if method.start < 0:
            x = backbone.stem(method.change_images(x), method)
        x = method.after_blocks(backbone.run(x, method, start=max(method.start, 0)))
        return backbone.pool(x, method)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) normalised -> logits (B, num_classes)."""
        return self.classify(self.features(self.below(images)))

    def training_loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of features (B, D) and labels (B,), plus the method's own loss."""
        return F.cross_entropy(self.classify(features), labels) + self.method.loss(features, labels)

    def method_parameters(self) -> list[nn.Parameter]:
        """The trained parameters other than the head's."""
        own = [parameter for parameter in self.method.parameters() if parameter.requires_grad]
        return [*own, *self.method.trained(self.backbone)]


def device_of(module: nn.Module) -> torch.device:
    """The device of a module's parameters."""
    return next(module.parameters()).device
