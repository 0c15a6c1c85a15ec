"""What a method is, and the model that joins backbone, method and head."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from ..chance import stream
from ..errors import BadInput
from ..models.backbones import Backbone
from ..models.blocks import Hooks
from ..models.structure import changed, describe, structure


class Method(Hooks, nn.Module):
    """What a method adds to a frozen backbone; the base class adds nothing.

    A subclass is named `Method`, has a frozen dataclass `Settings` beside it, and overrides what it
    needs of `blocks.Hooks` and of what follows.

    Attributes:
        families: the backbones that can carry it.
        inside: whether it acts inside a ViT's blocks, so that they must be of timm's standard kind.
        start: index of the first block whose input, weights or prompts are trained. Everything
            below is constant and may be cached. -1 means the image or the stem, depth means the
            pooled features.
        trains_backbone: whether it changes the backbone's own parameters.
    """

    families = ("vit", "resnet", "swin")
    inside = False
    start = -1
    trains_backbone = False

    def __init__(self, backbone: Backbone, settings, num_classes: int):
        super().__init__()
        self.settings = settings

    def reset(self, generator: torch.Generator) -> None:
        """Set the method's own parameters to their start."""

    def prepare(
        self, backbone: Backbone, images: torch.Tensor, labels: torch.Tensor, generator
    ) -> None:
        """See the training set (n, 3, H, W), normalised, before the first step."""

    def trained(self, backbone: Backbone) -> list[nn.Parameter]:
        """The backbone's parameters that it trains."""
        return []

    def change_images(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> (B, 3, H, W): what it does to the image."""
        return images

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        """What it does to the activations leaving the last block."""
        return x

    def loss(self, features: torch.Tensor, labels: torch.Tensor):
        """What a training step adds to the cross-entropy, from pooled features (B, D) and labels
        (B,)."""
        return 0

    def after_epoch(self) -> None:
        """What it does when every training image was seen once more."""

    def prune(self):
        """Asked after training: None, or a function that prunes, to be called before training from
        the start."""
        return None

    def merge(self, backbone: Backbone) -> None:
        """Write what was learned into the weights of a backbone copy, so that it runs without the
        method.

        Raises:
            BadInput: the method has no such form.
        """
        raise BadInput(
            "only lora, ssf, bias and the methods that train the backbone's own weights "
            "can be merged."
        )


class TunedModel(nn.Module):
    """Backbone, method and a linear head, as one model from images to logits."""

    # what it was last fitted to: "name", "class_names", "image_size", "resize"
    task: dict | None = None

    def __init__(self, backbone: Backbone, slug: str, method: Method, num_classes: int):
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
        """Classes, hooks and methods of an object's own, of model, method and head; the backbone
        has its fingerprint."""
        return structure(self, {"backbone", "built", "task"}, attributes=False)

    @property
    def changes(self) -> str:
        """What differs from the method of this slug as it was built: twelve hex digits, or ""."""
        own = getattr(type(self.method), "plain", type(self.method))
        known = f"{__package__}.{self.slug.replace('-', '_')}.Method"
        other = {} if describe(own) == known else {"method": describe(own)}
        return changed(self.built, self.structure() | other)

    def reset(self, seed: int = 0) -> None:
        """Back to the untrained state: the backbone's weights, the method's start, a small random
        head."""
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
        """(B, 3, H, W) -> what enters block `method.start`; constant during training, so
        cacheable."""
        backbone, start = self.backbone, self.method.start
        if start < 0:
            return images  # the method acts on the image or in the stem
        x = backbone.run(backbone.stem(images), stop=start)
        return backbone.pool(x) if start == backbone.depth else x

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """Pooled features (B, D) -> logits (B, num_classes)."""
        return self.head((features - self.feature_mean) / self.feature_scale)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What `below` returns -> pooled features (B, D)."""
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
        """Cross-entropy of pooled features (B, D) against labels (B,), and what the method adds to
        it."""
        return F.cross_entropy(self.classify(features), labels) + self.method.loss(features, labels)

    def method_parameters(self) -> list[nn.Parameter]:
        """What is trained besides the head."""
        own = [parameter for parameter in self.method.parameters() if parameter.requires_grad]
        return [*own, *self.method.trained(self.backbone)]


def device_of(module: nn.Module) -> torch.device:
    """Where a module's parameters lie."""
    return next(module.parameters()).device
