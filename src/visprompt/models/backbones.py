"""Frozen timm backbones and the one loop over their blocks."""

import copy
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import timm
import torch
from timm.models.resnet import ResNet
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from ..checks import require
from ..errors import BadInput
from ..records import watching
from ..records.watch import Seen, note
from . import embedded
from .blocks import NO_HOOKS, PromptedWindows, is_standard, named_layers, swin_block, vit_block
from .checkpoints import load_weights
from .structure import changed, structure

FAMILIES = {"vit": VisionTransformer, "resnet": ResNet, "swin": SwinTransformer}
ACCEPTED = (
    "a plain timm ViT (such as vit_base_patch16_224), a timm Swin (such as "
    "swin_base_patch4_window7_224) "
    "or a timm ResNet (such as resnet101)"
)


# What says nothing of how a backbone computes, or is told apart in a record.
NO_STRUCTURE = {
    "name",
    "mean",
    "std",
    "trims",
    "architecture",
    "found_shapes",
    "drawn",
    "built",
    "made_by",
}


class Backbone(nn.Module):
    """A frozen network as stem, blocks and pooling.

    Attributes:
        name: timm's name or an embedded one (`embedded.networks()`).
        family: "vit", "resnet" or "swin".
        blocks: the L transformer blocks, or the L residual blocks of all stages, in order.
        depth, width: L, and the length D of the pooled features.
        prefix: tokens before the patches (class token, registers); 0 if there are none.
        image_size: side of an image in pixels; transformers take no other, a ResNet is measured at
            it.
        mean, std: the normalisation it was trained with.
        opened: whether methods can act inside its blocks.
        trims: whether the last block of a ViT that pools its class token computes that token alone,
            which changes no output; False counts and times the network as the papers run it.
        fingerprint: identifies the present weights; see there.
    """

    trims = True
    model: Any  # timm's, of which there is one class a family
    built: dict[str, str]
    made_by: Seen  # the code that made it, for the records of what is done with it

    def __init__(
        self, model: Any, name: str, image_size: int, mean: Sequence[float], std: Sequence[float]
    ):
        super().__init__()
        self.model, self.name, self.image_size = model, name, image_size
        self.mean, self.std = tuple(mean), tuple(std)
        self.family = next(family for family, kind in FAMILIES.items() if isinstance(model, kind))
        self.is_vit = self.family == "vit"
        self.depth, self.width = len(self.blocks), model.num_features
        self.prefix = model.num_prefix_tokens if self.is_vit else 0
        self.has_class_token = self.is_vit and model.cls_token is not None
        self.pools_class_token = self.is_vit and model.global_pool == "token"
        self.opened = self.family == "swin" or (self.is_vit and all(map(is_standard, self.blocks)))
        # of an embedded one: what its manifest says; a timm name says it itself
        self.architecture: dict[str, Any] = {}
        self.found_shapes: tuple[list[tuple[int, ...]], Seen] | None = None
        # of random weights: their name, and their bits when they were drawn
        self.drawn: tuple[str, str] | None = None
        self.requires_grad_(False).eval()
        if self.family == "resnet":
            self.to(memory_format=torch.channels_last)  # a fifth faster on a CPU, same values
        if self.family == "swin":
            for block in self.blocks:
                block.attn.__class__ = PromptedWindows
        self.note_structure()

    def note_structure(self) -> None:
        """Remember the present structure (all but the tensors) as the one its name stands for."""
        self.built = structure(self, NO_STRUCTURE)

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits of name and tensors, computed anew each time; "" on the meta device.

        Random weights are named by their seed, as "random, seed 0", until they change: their bits
        differ between processors. A network whose structure was changed says so, as "..., changed
        0123456789ab". Takes about a second for 2 GB of weights, so keep it out of loops.
        """
        if next(self.parameters()).is_meta:
            return ""
        bits, other = fingerprint_weights(self), changed(self.built, structure(self, NO_STRUCTURE))
        bits = self.drawn[0] if self.drawn is not None and self.drawn[1] == bits else bits
        return f"{bits}, changed {other}" if other else bits

    @property
    def blocks(self) -> list[Any]:
        """The L blocks in order."""
        model = self.model
        if self.family == "vit":
            return list(model.blocks)
        if self.family == "swin":
            return [block for stage in model.layers for block in stage.blocks]
        return [
            block
            for stage in (model.layer1, model.layer2, model.layer3, model.layer4)
            for block in stage
        ]

    def stem(self, images: torch.Tensor, method=NO_HOOKS) -> torch.Tensor:
        """Images (B, 3, H, W) -> input of block 0: tokens (B, N, D), class token first, or maps.

        Maps are (B, C, H', W') in a ResNet and (B, H', W', D) in a Swin.

        Raises:
            BadInput: images of another size than the position embedding allows, or not (B, 3, H,
                W).
        """
        if images.ndim != 4 or images.shape[1] != 3:
            raise BadInput(f"images must be (B, 3, H, W), not {tuple(images.shape)}.")
        model, size = self.model, self.image_size
        if self.family == "resnet":
            return model.maxpool(model.act1(model.bn1(model.conv1(images))))
        if images.shape[-2:] != (size, size):
            raise BadInput(
                f"{self.name} takes images of {size}x{size} pixels, not "
                f"{images.shape[-2]}x{images.shape[-1]}. "
                f"Resize them to {size}x{size}."
            )
        patches = method.around(-1, "patch_embed", model.patch_embed, images)
        return model.norm_pre(model._pos_embed(patches)) if self.is_vit else patches

    def run(
        self, x: torch.Tensor, method=NO_HOOKS, start: int = 0, stop: int | None = None, keep=None
    ):
        """The block loop: the input of block `start` -> the output of block `stop` - 1.

        Args:
            x: (B, N, D), (B, H', W', D) or (B, C, H', W').
            method: its hooks are called at every block; see `blocks.Hooks`.
            keep: a list that receives each block's input, after the method's change.
        """
        trims = (
            self.trims
            and self.pools_class_token
            and self.opened
            and stop in (None, self.depth)
            and method.trims
        )
        merging = {}
        if self.family == "swin":  # patches merge before the first block of a stage
            first = np.cumsum([0] + [len(stage.blocks) for stage in self.model.layers])
            merging = dict(zip(first.tolist(), [stage.downsample for stage in self.model.layers]))
        for index, block in enumerate(self.blocks[start:stop], start):
            if index in merging:
                x = merging[index](x)
            x = method.before_block(index, x)
            if keep is not None:
                keep.append(x)
            if self.is_vit and self.opened:
                apply = partial(
                    vit_block, block, index, method=method, trim=trims and index == self.depth - 1
                )
            elif self.family == "swin":
                apply = partial(swin_block, block, index, method=method)
            else:
                apply = block
            x = method.around(index, "block", apply, x)
        return x

    def pool(self, x: torch.Tensor, method=NO_HOOKS) -> torch.Tensor:
        """Output of the last block -> features (B, D), pooled as timm does."""
        model = self.model
        if self.family == "resnet":
            return model.global_pool(x)
        x = method.around(self.depth, "norm", model.norm, x)
        if self.family == "swin":
            return model.head.global_pool(x)
        return method.around(self.depth, "fc_norm", model.fc_norm, model.pool(x))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (B, 3, H, W) -> features (B, D) without any method."""
        return self.pool(self.run(self.stem(images)))

    def layers(self) -> dict[tuple[int, str], Any]:
        """(block index, name as in `Hooks.around`) -> layer with weights, of an opened ViT."""
        model = self.model
        known = {(-1, "patch_embed"): model.patch_embed.proj}
        for index, block in enumerate(self.blocks):
            known |= {(index, name): layer for name, layer in named_layers(block).items()}
        ends = {(self.depth, "norm"): model.norm, (self.depth, "fc_norm"): model.fc_norm}
        return known | {
            key: layer for key, layer in ends.items() if not isinstance(layer, nn.Identity)
        }

    @torch.no_grad()
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes, without the batch, of the inputs of blocks 0 to L - 1, from meta tensors."""
        if self.found_shapes is None:
            with watching() as seen:
                meta, kept = to_meta(self), []
                dtype, size = next(self.parameters()).dtype, self.image_size
                meta.run(
                    meta.stem(torch.empty(1, 3, size, size, device="meta", dtype=dtype)), keep=kept
                )
            self.found_shapes = [tuple(x.shape[1:]) for x in kept], seen
        else:
            note(self.found_shapes[1])
        return self.found_shapes[0]


def load_backbone(
    name: str, weights: str | Path | None = None, *, device: str | torch.device = "cpu"
) -> Backbone:
    """Load a frozen backbone.

    Args:
        name: a timm ViT, ResNet or Swin, or an embedded one.
        weights: None for random weights (seed 0); "pretrained" for the published ones (embedded:
            the project's own); or a .safetensors or .pth file with timm's key names.
        device: "meta" gives shapes without weights, for counting.

    Raises:
        BadInput: unknown name, another family, a missing or damaged file, weights of another
            architecture, or a device that this machine lacks.
    """
    require("the backbone's name", name, str)
    require("weights", weights, str | Path | None)
    device, seed = check_device(device), 0
    meta, known = device.type == "meta", embedded.networks()
    with torch.random.fork_rng(devices=[]), torch.device("meta" if meta else "cpu"):
        torch.manual_seed(seed)
        if name in known:
            entry = known[name]
            with watching() as building:
                model = embedded.build_from(entry)
            size, mean, std = entry["image_size"], entry["mean"], entry["std"]
        else:
            building = Seen()
            entry = embedded.from_files().get(name)
            if entry and weights == "pretrained" and not meta:
                raise BadInput(
                    f"the weights of {name} have no address; give their file: weights {name}=FILE."
                )
            model = timm_model(
                entry["timm"] if entry else name, pretrained=weights == "pretrained" and not meta
            )
            size = model.default_cfg["input_size"][-1]
            mean, std = (entry or model.default_cfg)["mean"], (entry or model.default_cfg)["std"]
    if not isinstance(model, tuple(FAMILIES.values())):
        raise BadInput(f"{name} is no backbone the block loop knows; give {ACCEPTED}.")
    file = embedded.weights_file(name) if name in known and weights == "pretrained" else weights
    if file not in (None, "pretrained") and not meta:
        load_weights(model, Path(file), name)
    with watching() as seen:
        backbone = Backbone(model, name, size, mean, std)
    seen.add(building)
    backbone.made_by = seen  # for the records of what is done with it
    if name in known:
        backbone.architecture = {key: known[name][key] for key in ("timm_class", "timm_kwargs")}
    if weights is None and not meta:
        backbone.drawn = f"random, seed {seed}", fingerprint_weights(backbone)
    return backbone.to(device)


def known_backbones() -> list[str]:
    """Names of the embedded backbones and of those whose weights are files of their own."""
    return [*embedded.networks(), *embedded.from_files()]


def is_known(name: str) -> bool:
    """Whether this project or timm knows a name, with or without the tag of its weights."""
    return name in known_backbones() or timm.is_model(name.partition(".")[0])


def check_device(device: str | torch.device) -> torch.device:
    """The device of that name.

    Raises:
        BadInput: this machine has no such device.
    """
    try:
        wanted = torch.device(device)
        torch.empty(0, device=wanted)
    except Exception as error:  # each kind of device fails in its own way
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(
            f"device {device!r} cannot be used here ({why[:80].rstrip('. ')}); give 'cpu'."
        ) from error
    return wanted


def timm_model(name: str, pretrained: bool) -> Any:
    """`timm.create_model`.

    Raises:
        BadInput: timm does not know the name, or its weights cannot be fetched.
    """
    if not timm.is_model(name.split(".")[0]):
        near = timm.list_models(f"*{name.split('.')[0].split('_')[0]}*")[:3]
        raise BadInput(
            f"unknown backbone {name!r}. Give {ACCEPTED}, or an embedded one: "
            f"{', '.join(embedded.networks())}."
            + (f" timm has, for instance, {', '.join(near)}." if near else "")
        )
    try:
        return timm.create_model(name, pretrained=pretrained)
    except Exception as error:
        if "Invalid pretrained tag" in str(error):
            tags = ", ".join(timm.list_pretrained(name.split(".")[0])[:5]) or "none"
            raise BadInput(
                f"unknown weights in the backbone's name {name!r}. timm has {tags}."
            ) from error
        if not pretrained:
            raise
        raise BadInput(
            f"the published weights of {name} cannot be fetched ({type(error).__name__}). "
            f"Connect to the network, "
            "or give a file: weights='path/to/weights.safetensors'."
        ) from error


def fingerprint_weights(backbone: Backbone) -> str:
    """Twelve hex digits of the backbone's name and all its tensors."""
    digest = hashlib.sha256(backbone.name.encode())
    for key, value in sorted(backbone.model.state_dict().items()):
        if not key.startswith(("head.", "fc.")):
            if value.dtype not in (torch.float32, torch.int64):  # the usual ones go without saying
                digest.update(str(value.dtype).encode())
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:12]


Network = TypeVar("Network", bound=nn.Module)


def to_meta(module: Network) -> Network:
    """A copy of a module on the meta device: shapes without numbers."""
    if next(module.parameters()).is_meta:
        return module
    memo = {}
    for parameter in module.parameters():
        memo[id(parameter)] = nn.Parameter(
            parameter.to("meta"), requires_grad=parameter.requires_grad
        )
    for buffer in module.buffers():
        memo[id(buffer)] = buffer.to("meta")  # type: ignore[assignment]
    return copy.deepcopy(module, memo)
