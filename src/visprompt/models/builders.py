"""Build the networks that backbones.yaml describes: plain timm models with random weights."""

from typing import Any

from torch import nn


def build(entry: dict, num_classes: int = 112) -> Any:
    """An embedded network: images (B, 3, S, S) -> logits (B, num_classes).

    A class of timm's has a function of its own where it needs other arguments.
    """
    return (build_swin if entry["timm_class"] == "SwinTransformer" else build_from)(
        entry, num_classes
    )


def build_swin(entry: dict, num_classes: int) -> Any:
    """A Swin transformer."""
    from timm.models.swin_transformer import SwinTransformer

    return SwinTransformer(**entry["timm_kwargs"], num_classes=num_classes)


def build_from(entry: dict, num_classes: int = 112) -> Any:
    """A ViT or a ResNet."""
    kwargs = dict(entry["timm_kwargs"], num_classes=num_classes)
    if entry["timm_class"] == "VisionTransformer":
        from timm.models.vision_transformer import VisionTransformer

        model = VisionTransformer(**kwargs)
        for block in model.blocks:
            # at 37 tokens the plain form is a sixth faster on a CPU, same values
            block.attn.fused_attn = False
        return model
    from timm.models.resnet import BasicBlock, ResNet

    model = ResNet(BasicBlock, **kwargs)
    # timm's stem shrinks the picture four times; at 24 pixels nothing would be left for the stages
    # to see
    model.conv1 = nn.Conv2d(3, model.bn1.num_features, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model
