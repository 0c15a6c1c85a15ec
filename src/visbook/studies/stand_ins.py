"""Stand-ins of published networks for a rehearsal: the same name, family, blocks, heads, pooling,
normalisation and keys of a checkpoint, but narrow and for few pixels."""

import re
from pathlib import Path

import timm
import torch
from torch import nn

from visprompt.errors import BadInput, choose
from visprompt.models import embedded
from visprompt.models.backbones import Backbone
from visprompt.models.checkpoints import load_weights
from visprompt.models.loading import STATISTICS, pool_patches
from visprompt.records import watching

# entries of a token, whole numbers for 3, 6, 12 and 16 heads; of a Swin's first stage
WIDTHS = {"vit": 48, "swin": 32}
LARGE = 64  # of a ViT-Large, on which AP's Table A8 has LoRA of rank 50
CHANNELS = (4, 8, 16, 32)  # of a ResNet's stages, a sixteenth of the published ones
# of a side: four windows of seven patches; a ViT has ten patches of a side, as many as iVPT
# reinforces
PIXELS = {"swin": 112, "resnet": 64}


def timm_name(name: str) -> str:
    """The name under which timm knows a network."""
    entry = embedded.from_files().get(name)
    return entry["timm"] if entry else name


def narrowed(name: str) -> tuple[dict, int]:
    """The arguments by which a network of timm's becomes narrow and small of picture, and its
    pixels of a side.

    Raises:
        BadInput: another family.
    """
    family = choose(
        "family of a backbone", re.match("[a-z]*", timm_name(name))[0], ["vit", "swin", "resnet"]
    )
    if family == "resnet":
        return {"channels": CHANNELS}, PIXELS[family]
    side = PIXELS.get(family) or 10 * int(re.search(r"patch(\d+)", timm_name(name))[1])
    width = LARGE if timm_name(name).startswith("vit_large") else WIDTHS[family]
    return {"embed_dim": width, "img_size": side}, side


def narrow_model(name: str) -> tuple[nn.Module, dict]:
    """A narrow network with random weights (seed 0), and the arguments that made it so."""
    changes, _ = narrowed(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model(timm_name(name), pretrained=False, **changes), changes


def narrow_backbone(
    name: str,
    weights: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    statistics: str = "checkpoint",
) -> Backbone:
    """`loading.load_backbone` of the narrow network: weights come from a file as `write_checkpoint`
    leaves it, or are random.

    Raises:
        BadInput: as `load_backbone`; "pretrained", since nobody publishes weights of these.
    """
    if weights == "pretrained":
        raise BadInput(
            f"no file of weights is given for the stand-in of {name}; make rehearsal "
            f"writes one for each."
        )
    model, changes = narrow_model(name)
    entry = embedded.from_files().get(name) or model.default_cfg
    if weights is not None:
        load_weights(model, Path(weights), name)
    with watching() as seen:
        mean, std = STATISTICS[choose("statistics", statistics, STATISTICS)] or (
            entry["mean"],
            entry["std"],
        )
        backbone = Backbone(model, name, narrowed(name)[1], mean, std)
        if embedded.published().get(name, {}).get("pooling") == "patches":
            pool_patches(backbone)
    backbone.made_by = seen
    # so no run of it has the name of a real one's
    backbone.architecture = {**backbone.architecture, "rehearsal": changes}
    if weights is None:
        backbone.drawn = "random, seed 0", backbone.fingerprint
    return backbone.to(device)


def write_checkpoint(name: str, folder: Path) -> Path:
    """Write random weights of a narrow network as those who published the real ones wrote
    theirs."""
    from safetensors.torch import save_file

    model, _ = narrow_model(name)
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    if name.endswith(".mae"):  # with its decoder, in a dictionary
        decoder = {"mask_token": torch.zeros(1, 1, 8), "decoder_embed.weight": torch.zeros(8, 8)}
        content = {
            "model": {key: value for key, value in state.items() if not key.startswith("head.")}
            | decoder
        }
    elif name.endswith(".mocov3"):  # beside its momentum encoder; the projector is called head
        body = {key: value for key, value in state.items() if not key.startswith("head.")} | {
            "head.0.weight": torch.zeros(8, 8)
        }
        named = {
            f"module.{which}_encoder.{key}": value
            for which in ("base", "momentum")
            for key, value in body.items()
        }
        content = {"epoch": 300, "state_dict": named}
    else:
        save_file(state, path := folder / f"{name}.safetensors")
        return path
    torch.save(content, path := folder / f"{name}.pth")
    return path
