"""The embedded backbones of backbones.yaml: plain timm models, and their weight files."""

from pathlib import Path

from torch import nn

from .. import paths
from ..errors import choose
from ..manifests import Entries

# by this name `load_backbone` calls it, whose text stands in kept records
from .builders import build as build_from


def networks() -> dict[str, dict]:
    """Name -> description of the embedded backbones, from data_manifests/backbones.yaml.

    Raises:
        BadInput: the file is missing or damaged.
    """
    return Entries(paths.MANIFESTS / "backbones.yaml", "embedded")


def from_files() -> dict[str, dict]:
    """Name -> timm architecture and normalisation, of networks whose weights are files."""
    return Entries(paths.MANIFESTS / "backbones.yaml", "files")


def published() -> dict:
    """timm's name with its tag -> what each paper uses the checkpoint for."""
    return Entries(paths.MANIFESTS / "backbones.yaml", "published")


def averages(name: str) -> bool:
    """Whether the manifest says that a backbone averages its tokens; of others it says nothing."""
    entry = {**networks(), **published()}.get(name, {})
    pools = entry.get("timm_kwargs", {}).get("global_pool") == "avg"
    return pools or entry.get("pooling") == "patches"


def build_embedded(name: str, num_classes: int = 112) -> nn.Module:
    """An embedded backbone with random weights: (B, 3, 24, 24) -> logits (B, num_classes).

    Raises:
        BadInput: no embedded backbone has that name.
    """
    known = networks()
    return build_from(known[choose("embedded backbone", name, known)], num_classes)


def weights_file(name: str) -> Path:
    """Path of an embedded backbone's weights."""
    known = networks()
    return paths.MANIFESTS / known[choose("embedded backbone", name, known)]["weights"]
