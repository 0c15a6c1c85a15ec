"""The methods: one short file each, all on the one block loop of `models.backbones`."""

import functools
import importlib
import re
import sys
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from ..checks import require
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..records import watching
from .base import Method, TunedModel, device_of

# the order in which pages and tables list methods; others follow by name
ORDER = (
    "linear-probe",
    "full-finetune",
    "norm-tune",
    "vp",
    "ap",
    "bias",
    "lora",
    "adapter",
    "adaptformer",
    "ssf",
    "vpt-shallow",
    "vpt-deep",
    "gate-vpt",
    "e2vpt",
    "provp",
    "express",
    "cdc",
    "ivpt",
    "spt-shallow",
    "spt-deep",
    "da-vpt",
    "da-vpt-plus",
)


def slugs() -> list[str]:
    """Slugs of all methods: modules of this room that have a `Settings` and a `Method`."""
    texts = {
        path.stem.replace("_", "-"): path.read_text(encoding="utf-8")
        for path in Path(__file__).parent.glob("*.py")
    }
    modules = [
        slug
        for slug, text in texts.items()
        if {"Settings", "Method"} <= set(re.findall(r"(?m)^class (\w+)", text))
    ]
    return [slug for slug in ORDER if slug in modules] + sorted(set(modules) - set(ORDER))


METHODS = tuple(slugs())


def method_class(slug: str) -> type[Method]:
    """The class of a method; its module holds the `Settings` beside it.

    Raises:
        BadInput: unknown method.
    """
    name = choose("method", slug, METHODS).replace("-", "_")
    return importlib.import_module(f".{name}", __name__).Method


@functools.cache
def names() -> dict[str, str]:
    """Slug -> display name, the part before the colon of the module's docstring."""
    return {
        slug: sys.modules[method_class(slug).__module__].__doc__.split(":")[0]  # type: ignore[union-attr]
        for slug in METHODS
    }


def settings_of(slug: str, **settings: Any) -> Any:
    """The `Settings` of a method, checked; lists become tuples.

    Raises:
        BadInput: unknown method or setting, or a value of the wrong type.
    """
    kind = sys.modules[method_class(slug).__module__].Settings
    known = [field.name for field in fields(kind)]
    for name in settings:
        if not known:
            raise BadInput(f"{slug} takes no settings, not even {name!r}.")
        choose(f"setting of {slug}", name, known)
    hints = typing.get_type_hints(kind)
    settings = {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }
    for name, value in settings.items():
        require(f"setting {name} of {slug}", value, hints[name])
    return kind(**settings)


def build_method(slug: str, backbone: Backbone, num_classes: int, **settings: Any) -> TunedModel:
    """Put a method and a fresh linear head on a frozen backbone.

    Args:
        slug: one of `METHODS`, such as "vpt-deep".
        settings: the fields of the method's `Settings`; a list stands for a tuple.

    Returns:
        A model on the backbone's device, images (B, 3, H, W) -> logits (B, num_classes). Method and
        head are float64 if the backbone is, else float32.

    Raises:
        BadInput: unknown method or setting, an impossible value, or a backbone that cannot carry
            the method.
    """
    if not isinstance(backbone, Backbone):
        raise BadInput(
            f"give a backbone that load_backbone returned, not a {type(backbone).__name__}."
        )
    kind, chosen = method_class(slug), settings_of(slug, **settings)
    require("num_classes", num_classes, int)
    if num_classes < 2:
        raise BadInput(f"num_classes must be 2 or more, not {num_classes}.")
    if backbone.family not in kind.families:
        raise BadInput(
            f"{slug} runs on {' and '.join(kind.families)} backbones; {backbone.name} is a "
            f"{backbone.family}."
        )
    if kind.inside and not backbone.opened:
        raise BadInput(
            f"{slug} acts inside timm's standard ViT block; {backbone.name} has blocks of "
            f"another kind."
        )
    with watching() as seen:
        with torch.device(device_of(backbone)):
            method = kind(backbone, chosen, num_classes)
        model = TunedModel(backbone, slug, method, num_classes)
    model.made_by = seen
    return model.double() if next(backbone.parameters()).dtype == torch.float64 else model
