"""Builds the embedded backbones of data_manifests/backbones.yaml: plain timm models, no weights."""

from pathlib import Path

from torch import nn

from .. import paths
from ..errors import choose
from ..manifests import load_yaml


def networks() -> dict[str, dict]:
    """The embedded backbones' descriptions by name, from data_manifests/backbones.yaml.

    Raises:
        BadInput: the file is missing or damaged.
    """
    return load_yaml(paths.MANIFESTS / "backbones.yaml")["embedded"]


def from_files() -> dict[str, dict]:
    """Networks whose weights come as a file of their own, by name: timm's architecture and their normalisation."""
    return load_yaml(paths.MANIFESTS / "backbones.yaml")["files"]


def published() -> dict[str, dict]:
    """The papers' checkpoints that timm fetches, by timm's name with its tag, and what each paper uses them for."""
    return load_yaml(paths.MANIFESTS / "backbones.yaml")["published"]


def build_embedded(name: str, num_classes: int = 112) -> nn.Module:
    """An embedded backbone with random weights: images (B, 3, 24, 24) -> logits (B, num_classes).

    Raises:
        BadInput: no embedded backbone has that name.
    """
    known = networks()
    return build_from(known[choose("embedded backbone", name, known)], num_classes)


def build_from(entry: dict, num_classes: int = 112) -> nn.Module:
    """What an entry of the manifest describes, with random weights."""
    kwargs = dict(entry["timm_kwargs"], num_classes=num_classes)
    if entry["timm_class"] == "VisionTransformer":
        from timm.models.vision_transformer import VisionTransformer

        model = VisionTransformer(**kwargs)
        for block in model.blocks:
            block.attn.fused_attn = False  # at 37 tokens the plain form is a sixth faster on a CPU, same values
        return model
    from timm.models.resnet import BasicBlock, ResNet

    model = ResNet(BasicBlock, **kwargs)
    # timm's stem shrinks the picture four times; at 24 pixels nothing would be left for the stages to see
    model.conv1 = nn.Conv2d(3, model.bn1.num_features, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def weights_file(name: str) -> Path:
    """Where an embedded backbone's weights are kept."""
    known = networks()
    return paths.MANIFESTS / known[choose("embedded backbone", name, known)]["weights"]
