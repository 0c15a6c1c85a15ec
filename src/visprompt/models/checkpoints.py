"""Read checkpoint files, check them, and load them into a network.

Known forms: timm's own, MAE's ({"model": …}, with or without its decoder), MoCo-v3's
("module.base_encoder.…", beside a momentum encoder and projectors), and those that timm's
checkpoint filters know (CLIP's, older Swins'). Files are safetensors, or pickles of which only
tensors are read.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
from timm.models import clean_state_dict, load_state_dict
from torch import nn

from ..errors import BadInput


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """Name -> tensor of a weights file, without the wrappings that training scripts add.

    Raises:
        BadInput: the file is missing, unreadable or holds something else.
    """
    remedy = "Give the path of a .safetensors or .pth file."
    if not os.path.isfile(path):  # where pathlib raises, for paths that are too long, this says no
        raise BadInput(
            f"weights file {path} "
            f"{'is no file' if os.path.exists(path) else 'does not exist'}. {remedy}"
        )
    try:
        # timm's; knows "state_dict", "model" and the prefix "module."
        state = load_state_dict(path, use_ema=False)
        while inner := next(
            (state[key] for key in ("state_dict", "model") if isinstance(state.get(key), dict)),
            None,
        ):
            state = clean_state_dict(inner)
    except AttributeError:  # no dictionary where one belongs, or keys that are no text
        state = {}
    except Exception as error:
        raise BadInput(
            f"weights file {path} cannot be read ({type(error).__name__}): damaged, or "
            f"more than weights; fetch it again."
        ) from error
    if not state:
        raise BadInput(f"weights file {path} holds no tensors by name. {remedy}")
    for key, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise BadInput(
                f"weights file {path}: {key!r} is a {type(value).__name__}, no tensor. {remedy}"
            )
    return state


def timm_names(state: dict[str, torch.Tensor], model: nn.Module) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint under the model's names, without those only pretraining needed.

    timm's filters also resize embeddings to another patch or image size. Here sizes stay, so that a
    checkpoint of another architecture is refused.
    """
    encoder = "base_encoder."
    if any(key.startswith(encoder) for key in state):  # MoCo-v3's; its projector is called head
        state = {
            key.removeprefix(encoder): value
            for key, value in state.items()
            if key.startswith(encoder)
        }
        state = {key: value for key, value in state.items() if not key.startswith("head.")}
    if any(key.startswith("decoder_") for key in state):  # MAE's, as it is trained
        state = {
            key: value
            for key, value in state.items()
            if not key.startswith("decoder_") and key != "mask_token"
        }
    rename = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if rename is None or set(model.state_dict()) <= set(state):
        return state
    try:
        renamed = rename(dict(state), model)
    except Exception:  # made for another architecture: said where names and shapes are compared
        return state
    resized = [
        key
        for key, value in renamed.items()
        if key in state and state[key].numel() != value.numel()
    ]
    return renamed | {key: state[key] for key in resized}


def load_weights(model: Any, path: Path, name: str) -> None:
    """Load a weights file into a model; only the classifier may differ.

    Raises:
        BadInput: the file is missing, unreadable, of another architecture, or holds NaN or
            infinity.
    """
    state = timm_names(read_state(path), model)
    head = model.default_cfg.get("classifier", "head") if hasattr(model, "default_cfg") else ""
    heads = tuple(f"{prefix}." for prefix in {head, "head", "fc"} if prefix)
    wanted = {
        key: value.shape for key, value in model.state_dict().items() if not key.startswith(heads)
    }
    shapes = {key: value.shape for key, value in state.items() if not key.startswith(heads)}
    wrong = [key for key in wanted if wanted[key] != shapes.get(key)] + [
        key for key in shapes if key not in wanted
    ]
    if wrong:
        key = wrong[0]
        raise BadInput(
            f"weights file {path} is of another architecture than {name}: {len(wrong)} "
            f"tensors differ, first {key!r} "
            f"(file {tuple(shapes[key]) if key in shapes else 'lacks it'}, "
            f"{name} {tuple(wanted[key]) if key in wanted else 'lacks it'}). Name the "
            f"architecture it was made for."
        )
    state = {key: state[key].float() for key in wanted}
    for key, value in state.items():
        if not value.isfinite().all():
            raise BadInput(
                f"weights file {path} has NaN or infinity in {key!r}; give a file of "
                f"finite numbers."
            )
    model.load_state_dict(state, strict=False)
