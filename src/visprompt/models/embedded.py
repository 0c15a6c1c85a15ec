"""The embedded backbones of data_manifests/backbones.yaml, by name: plain timm models, and where
their weights lie."""

from pathlib import Path

from torch import nn

from .. import paths
from ..errors import choose
from ..manifests import Entries

# by this name `load_backbone` calls it, whose text stands in kept records
from .builders import build as build_from


def networks() -> dict[str, dict]:
    """The embedded backbones' descriptions by name, from data_manifests/backbones.yaml.

    Raises:
        BadInput: the file is missing or damaged.
    """
    return Entries(paths.MANIFESTS / "backbones.yaml", "embedded")


def from_files() -> dict[str, dict]:
    """Networks whose weights come as a file of their own, by name: timm's architecture and their
    normalisation."""
    return Entries(paths.MANIFESTS / "backbones.yaml", "files")


def published() -> dict[str, dict]:
    """The papers' checkpoints that timm fetches, by timm's name with its tag, and what each paper
    uses them for."""
    return Entries(paths.MANIFESTS / "backbones.yaml", "published")


def build_embedded(name: str, num_classes: int = 112) -> nn.Module:
    """An embedded backbone with random weights: images (B, 3, 24, 24) -> logits (B, num_classes).

    Raises:
        BadInput: no embedded backbone has that name.
    """
    known = networks()
    return build_from(known[choose("embedded backbone", name, known)], num_classes)


def weights_file(name: str) -> Path:
    """Where an embedded backbone's weights are kept."""
    known = networks()
    return paths.MANIFESTS / known[choose("embedded backbone", name, known)]["weights"]
