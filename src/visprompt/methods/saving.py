"""Tuned methods on disk: one small safetensors file, bound to the backbone it was tuned on."""

import copy
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..checks import require
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.pooling import KINDS, NORM_FIRST, order_of, ordered
from . import released
from .base import TunedModel, device_of


def own_tensors(model: TunedModel) -> dict[str, torch.Tensor]:
    """What a tuned model adds to its frozen backbone: method, head, changed backbone tensors."""
    own = {
        key: value for key, value in model.state_dict().items() if not key.startswith("backbone.")
    }
    if model.method.trains_backbone:
        frozen = model.source.state_dict()
        for key, value in model.backbone.state_dict().items():
            if not torch.equal(value, frozen[key]):
                own[f"backbone.{key}"] = value
    return {key: value.detach().cpu().contiguous().clone() for key, value in own.items()}


def save_method(model: TunedModel, path: str | Path) -> None:
    """Write method, settings, head and the backbone's fingerprint to one .safetensors file.

    The file is written whole or not at all.

    Raises:
        BadInput: not a model, another file ending, a place that cannot be written, or what
            `load_method` would refuse.
    """
    require("the model", model, TunedModel)
    require("the path of a saved method", path, str | Path)
    path = Path(path)
    if path.suffix != ".safetensors":
        raise BadInput(f"give a file name that ends in .safetensors, not {path.name!r}.")
    if device_of(model).type == "meta":
        raise BadInput(
            f"this {model.slug} has shapes alone; build it on a backbone loaded without "
            f"device='meta'."
        )
    tensors = own_tensors(model)
    for key, value in tensors.items():
        if not value.isfinite().all():
            raise BadInput(
                f"this {model.slug} has NaN or infinity in {key!r}; fit it again, with a "
                f"lower learning_rate."
            )
    about = {
        "method": model.slug,
        "settings": asdict(model.method.settings),
        "num_classes": model.num_classes,
        "backbone": model.source.name,
        "fingerprint": model.source.fingerprint,
        "tensors": sorted(tensors),
        "task": model.task,
        "as_released": released.form_of(model),
        "pooling": order_of(model.source),
    }
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        os.close(descriptor)
        save_file(tensors, part, metadata={"visprompt": json.dumps(about)})
        os.replace(part, path)
    except (
        OSError,
        SafetensorError,
        ValueError,
    ) as error:  # ValueError: NUL, or half of a surrogate pair
        why = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise BadInput(
            f"{path} cannot be written ({why}). Give a path that can be, or make room."
        ) from error
    finally:
        if part is not None:
            Path(part).unlink(missing_ok=True)


ABOUT = {
    "method": str,
    "settings": dict,
    "num_classes": int,
    "backbone": str,
    "fingerprint": str,
    "tensors": list[str],
    "task": dict | None,  # missing in older files
    "as_released": str,  # likewise; the forms of `released.DIFFERENCES` that it has
    "pooling": str,  # likewise; the order of `pooling.ordered`
}


def read_method(path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    """A saved method's description (see `ABOUT`), and its tensors by name.

    Raises:
        BadInput: the file is missing, damaged or of something else.
    """
    if not os.path.isfile(path):  # where pathlib raises, for paths that are too long, this says no
        what = "is no file" if os.path.exists(path) else "does not exist"
        raise BadInput(f"{path} {what}. Give the path of a file that save_method wrote.")
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["visprompt"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
        fields = {"task": None, "as_released": "", "pooling": NORM_FIRST, **about}
        fields = {name: fields[name] for name in ABOUT}
    except Exception as error:
        raise BadInput(
            f"{path} is damaged or was not written by save_method ({type(error).__name__})."
        ) from error
    for name, hint in ABOUT.items():
        require(f"{path}: {name}", fields[name], hint)
    return fields, tensors


def load_method(path: str | Path, backbone: Backbone) -> TunedModel:
    """Put a saved method back on its backbone.

    Raises:
        BadInput: the file is missing, damaged, incomplete or of another kind, holds NaN or
            infinity, or the method was tuned on another backbone (by architecture or weights).
    """
    from . import build_method

    require("the path of a saved method", path, str | Path)
    require("the backbone", backbone, Backbone)
    about, tensors = read_method(Path(path))
    weights = backbone.fingerprint
    if (about["backbone"], about["fingerprint"]) != (backbone.name, weights):
        raise BadInput(
            f"{path} was tuned on {about['backbone']} with weights {about['fingerprint']}; "
            f"this backbone is "
            f"{backbone.name} with weights {weights}. Load the backbone it was tuned on."
        )
    try:
        choose("order of pooling", about["pooling"], [NORM_FIRST, *KINDS])
        source = ordered(backbone, about["pooling"])
        model = build_method(about["method"], source, about["num_classes"], **about["settings"])
        released.take(model, released.named(about["method"], about["as_released"]))
    except (BadInput, TypeError) as error:  # TypeError: a setting with the name of another argument
        raise BadInput(f"{path}: {error}") from error
    check_tensors(path, about, tensors, model)
    model.load_state_dict(tensors, strict=False)
    model.task = checked_task(path, about)
    return model


def checked_task(path: str | Path, about: dict) -> dict | None:
    """The task that a saved method was fitted to; None if there is none.

    Raises:
        BadInput: the entry is not what `save_method` writes.
    """
    task = about["task"]
    if task is None:
        return None
    hints = {"name": str, "class_names": list[str], "image_size": int, "resize": str}
    for name, hint in hints.items():
        require(f"{path}: task's {name}", task.get(name), hint)
    if len(task["class_names"]) != about["num_classes"]:
        raise BadInput(
            f"{path} names {len(task['class_names'])} classes for {about['num_classes']}; "
            f"save the method again."
        )
    return {name: task[name] for name in hints}


def check_tensors(
    path: str | Path, about: dict, tensors: dict[str, torch.Tensor], model: TunedModel
) -> None:
    """Check names, shapes, types and finiteness of a saved method's tensors.

    Raises:
        BadInput: with the first fault.
    """
    state = model.state_dict()
    # always written; of the backbone, what changed
    own = {key for key in state if not key.startswith("backbone.")}
    allowed = set(state) if model.method.trains_backbone else own
    missing = sorted((own | set(about["tensors"])) - set(tensors))
    if missing:
        raise BadInput(f"{path} lacks {missing[0]!r}; save the method again.")
    for key, value in sorted(tensors.items()):
        fits = key in allowed and state[key].shape == value.shape
        if not fits or state[key].is_floating_point() != value.is_floating_point():
            raise BadInput(
                f"{path} holds {key!r}, which does not fit {about['method']} with its settings."
            )
        if not value.isfinite().all():
            raise BadInput(
                f"{path} has NaN or infinity in {key!r}; tune the method again, with a "
                f"lower learning_rate."
            )


def merged(model: TunedModel) -> TunedModel:
    """A model with the same logits and no method, whose changes are written into the weights.

    Raises:
        BadInput: the method cannot be merged (prompts, adapters).
    """
    from . import build_method

    require("the model", model, TunedModel)
    backbone = copy.deepcopy(model.backbone)
    if not model.method.trains_backbone:
        model.method.merge(backbone)
    backbone.requires_grad_(False)
    plain = build_method("linear-probe", backbone, model.num_classes)
    plain.head.load_state_dict(model.head.state_dict())
    plain.feature_mean.copy_(model.feature_mean)
    plain.feature_scale.copy_(model.feature_scale)
    plain.task = model.task
    return plain.eval()
