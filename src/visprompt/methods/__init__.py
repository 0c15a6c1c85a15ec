"""The methods: one short file each, all on the one block loop of `backbones`."""

import importlib
import sys
import typing
from dataclasses import fields

import torch

from ..backbones import Backbone
from ..checks import require
from ..errors import BadInput, choose
from .base import Method, TunedModel, device_of

# slug -> module of this package
METHODS = {
    "linear-probe": "linear_probe",
    "full-finetune": "full_finetune",
    "norm-tune": "norm_tune",
    "vp": "vp",
    "ap": "ap",
    "bias": "bias",
    "lora": "lora",
    "adapter": "adapter",
    "adaptformer": "adaptformer",
    "ssf": "ssf",
    "vpt-shallow": "vpt_shallow",
    "vpt-deep": "vpt_deep",
    "gate-vpt": "gate_vpt",
    "e2vpt": "e2vpt",
    "provp": "provp",
    "express": "express",
    "cdc": "cdc",
    "ivpt": "ivpt",
    "spt-shallow": "spt_shallow",
    "spt-deep": "spt_deep",
    "da-vpt": "da_vpt",
    "da-vpt-plus": "da_vpt_plus",
}


def method_class(slug: str) -> type[Method]:
    """The class of a method; its module holds the `Settings` beside it.

    Raises:
        BadInput: unknown method.
    """
    return importlib.import_module(f".{METHODS[choose('method', slug, METHODS)]}", __name__).Method


def build_method(slug: str, backbone: Backbone, num_classes: int, **settings) -> TunedModel:
    """Put a method and a fresh head on a backbone.

    Args:
        slug: one of `METHODS`.
        settings: the fields of the method's `Settings`; a list stands for a tuple.

    Returns:
        Head and method have the backbone's device; they are float64 where the backbone is, else float32.

    Raises:
        BadInput: unknown method or setting, an impossible value, or a backbone that cannot carry it.
    """
    if not isinstance(backbone, Backbone):
        raise BadInput(f"give a backbone that load_backbone returned, not a {type(backbone).__name__}.")
    kind = method_class(slug)
    settings_class = sys.modules[kind.__module__].Settings
    known = [field.name for field in fields(settings_class)]
    for name in settings:
        if not known:
            raise BadInput(f"{slug} takes no settings, not even {name!r}.")
        choose(f"setting of {slug}", name, known)
    hints = typing.get_type_hints(settings_class)
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    for name, value in settings.items():
        require(f"setting {name} of {slug}", value, hints[name])
    require("num_classes", num_classes, int)
    if num_classes < 2:
        raise BadInput(f"num_classes must be 2 or more, not {num_classes}.")
    if backbone.family not in kind.families:
        raise BadInput(f"{slug} runs on {' and '.join(kind.families)} backbones; {backbone.name} is a {backbone.family}.")
    if kind.inside and not backbone.opened:
        raise BadInput(f"{slug} acts inside timm's standard ViT block; {backbone.name} has blocks of another kind.")
    with torch.device(device_of(backbone)):
        method = kind(backbone, settings_class(**settings), num_classes)
    model = TunedModel(backbone, slug, method, num_classes)
    return model.double() if next(backbone.parameters()).dtype == torch.float64 else model
