"""Tuned methods on disk: one small safetensors file, bound to the backbone it was tuned on."""

import copy
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ..backbones import Backbone
from ..errors import BadInput
from .base import TunedModel


def own_tensors(model: TunedModel) -> dict[str, torch.Tensor]:
    """What distinguishes a tuned model from its frozen backbone: method, head, and backbone tensors that changed."""
    own = {key: value for key, value in model.state_dict().items() if not key.startswith("backbone.")}
    if model.method.trains_backbone:
        frozen = model.source.state_dict()
        for key, value in model.backbone.state_dict().items():
            if not torch.equal(value, frozen[key]):
                own[f"backbone.{key}"] = value
    return {key: value.detach().cpu().contiguous().clone() for key, value in own.items()}


def save_method(model: TunedModel, path: str | Path) -> None:
    """Write the method, its settings, the head and the backbone's fingerprint to a .safetensors file, whole or not."""
    path = Path(path)
    if path.suffix != ".safetensors":
        raise BadInput(f"give a file name that ends in .safetensors, not {path.name!r}.")
    about = {
        "method": model.slug, "settings": asdict(model.method.settings), "num_classes": model.num_classes,
        "backbone": model.source.name, "fingerprint": model.source.fingerprint,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    os.close(descriptor)
    try:
        save_file(own_tensors(model), name, metadata={"visprompt": json.dumps(about)})
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def load_method(path: str | Path, backbone: Backbone) -> TunedModel:
    """Put a saved method back on its backbone.

    Raises:
        BadInput: the file is missing, damaged or of something else, or the backbone is another than the one the
            method was tuned on, by architecture or by weights.
    """
    from . import build_method

    if not Path(path).exists():
        raise BadInput(f"{path} does not exist. Give the path of a file that save_method wrote.")
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["visprompt"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
    except Exception as error:
        raise BadInput(f"{path} is damaged or was not written by save_method ({type(error).__name__}).") from error
    if (about["backbone"], about["fingerprint"]) != (backbone.name, backbone.fingerprint):
        raise BadInput(
            f"{path} was tuned on {about['backbone']} with weights {about['fingerprint']}; this backbone is "
            f"{backbone.name} with weights {backbone.fingerprint}. Load the backbone it was tuned on."
        )
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in about["settings"].items()}
    model = build_method(about["method"], backbone, about["num_classes"], **settings)
    state = model.state_dict()
    unknown = sorted(set(tensors) - set(state))
    wrong = unknown or [key for key, value in tensors.items() if state[key].shape != value.shape]
    if wrong:
        raise BadInput(f"{path} holds {wrong[0]!r}, which does not fit {about['method']} with its settings.")
    model.load_state_dict(tensors, strict=False)
    return model


def merged(model: TunedModel) -> TunedModel:
    """The same logits without the method: what it learned is written into a copy of the backbone's weights.

    Raises:
        BadInput: the method has no such form (prompts, adapters).
    """
    from . import build_method

    backbone = copy.deepcopy(model.backbone)
    if not model.method.trains_backbone:
        model.method.merge(backbone)
    backbone.requires_grad_(False)
    plain = build_method("linear-probe", backbone, model.num_classes)
    plain.head.load_state_dict(model.head.state_dict())
    plain.feature_mean.copy_(model.feature_mean)
    plain.feature_scale.copy_(model.feature_scale)
    return plain.eval()
