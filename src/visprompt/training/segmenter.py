"""Backbone, method and decoder as one model from images to logits of every pixel."""

import torch
from torch import nn

from ..chance import stream
from ..errors import BadInput
from ..methods import build_method, da_vpt
from ..methods.base import device_of
from ..methods.dense import dense_loss, patch_labels
from ..models.backbones import Backbone
from ..models.intermediates import Leaving, as_map, grid
from ..models.structure import changed, structure
from ..records import watching
from ..records.watch import Seen
from .decoders import Decoder, build_decoder, reset_decoder
from .overlap import pixel_loss
from .windows import resize


class Segmenter(nn.Module):
    """Any method in the backbone, and a decoder that reads the outputs of some blocks.

    Attributes:
        tuned: the method on its backbone; its own head is not used.
        heads: the decoder's, the primary one last.
        blocks: the blocks that the heads read, counted from 0.
    """

    made_by: Seen
    built: dict[str, str]  # `shape` as it was built

    def __init__(
        self, backbone: Backbone, slug: str, classes: int, decoder: Decoder = Decoder(), **settings
    ):
        super().__init__()
        self.tuned = build_method(slug, backbone, classes, **settings)
        self.decoder, self.classes, self.grid = decoder, classes, grid(backbone)
        self.blocks = decoder.blocks(backbone.depth)
        self.heads = build_decoder(decoder, backbone, classes).to(device_of(backbone))
        if next(backbone.parameters()).dtype == torch.float64:
            self.heads.double()

    @property
    def slug(self) -> str:
        """The method's slug."""
        return self.tuned.slug

    @property
    def method(self):
        """The method."""
        return self.tuned.method

    @property
    def guided(self) -> bool:
        """Whether the method has losses of its own that use labels (DA-VPT)."""
        return isinstance(self.method, da_vpt.Method)

    @property
    def source(self) -> Backbone:
        """The frozen backbone."""
        return self.tuned.source

    @property
    def size(self) -> int:
        """Side of an image in pixels."""
        return self.source.image_size

    def reset(self, seed: int = 0) -> None:
        """Back to the untrained state; a seed initialises the decoder equally for all methods."""
        self.tuned.reset(seed)
        reset_decoder(self.heads, stream(seed, "start"))
        self.eval()

    def maps(self, pictures: torch.Tensor) -> list[torch.Tensor]:
        """Normalised images (B, 3, S, S) -> outputs of `blocks`, each (B, D, rows, columns)."""
        backbone, method = self.tuned.backbone, self.method
        leaving = Leaving(method, self.blocks)
        x = backbone.stem(method.change_images(pictures), method)
        last = self.blocks[-1] + 1
        x = backbone.run(x, leaving, stop=None if last == backbone.depth else last)
        outputs = [as_map(leaving.left[block], *self.grid) for block in self.blocks]
        if self.decoder.kind == "linear":
            outputs = [
                as_map(method.around(backbone.depth, "norm", backbone.model.norm, x), *self.grid)
            ]
        return outputs

    def every(self, pictures: torch.Tensor) -> list[torch.Tensor]:
        """Images (B, 3, S, S) -> logits (B, C, S, S) of every head, the primary one last."""
        return [
            resize(head(x), pictures.shape[-2:])
            for head, x in zip(self.heads, self.maps(pictures), strict=True)
        ]

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Normalised images (B, 3, S, S) -> logits (B, C, S, S) of the primary head."""
        return resize(self.heads[-1](self.maps(pictures)[-1]), pictures.shape[-2:])

    def training_loss(
        self, pictures: torch.Tensor, masks: torch.Tensor, ignored: int
    ) -> torch.Tensor:
        """Cross-entropy of all heads and masks (B, S, S), plus the method's own loss."""
        maps = self.maps(pictures)
        *others, primary = (
            resize(head(x), masks.shape[-2:]) for head, x in zip(self.heads, maps, strict=True)
        )
        loss = pixel_loss(primary, masks, ignored)
        for logits in others:
            loss = loss + self.decoder.auxiliary * pixel_loss(logits, masks, ignored)
        if self.guided:
            labels = patch_labels(masks, *self.grid)
            loss = loss + dense_loss(
                self.method, maps[-1].flatten(2).transpose(1, 2), labels, ignored
            )
        return loss

    def method_parameters(self) -> list[nn.Parameter]:
        """The trained parameters other than the decoder's."""
        return self.tuned.method_parameters()


def build_segmenter(
    slug: str, backbone: Backbone, classes: int, decoder: Decoder = Decoder(), **settings
) -> Segmenter:
    """Put a method and a fresh decoder on a ViT; see `methods.build_method`.

    Raises:
        BadInput: as `build_method`, a backbone that is not a ViT, or layers that it lacks.
    """
    if not isinstance(decoder, Decoder):
        raise BadInput(f"decoder must be a Decoder, not a {type(decoder).__name__}.")
    with watching() as seen:
        model = Segmenter(backbone, slug, classes, decoder, **settings)
    seen.add(model.tuned.made_by)
    model.made_by, model.built = seen, shape(model)
    return model


def shape(model: Segmenter) -> dict[str, str]:
    """Classes, hooks and replaced methods of a segmenter and its heads, without the method."""
    return structure(model, {"tuned", "built", "made_by"}, attributes=False)


def changes(model: Segmenter) -> str:
    """Twelve hex digits if method, decoder or loss differ from those that were built, else ""."""
    return model.tuned.changes + changed(model.built, shape(model))


def count_trained(model: Segmenter) -> dict[str, int]:
    """Numbers of trained parameters: {"method", "decoder", "total"}; the backbone is frozen."""
    method = sum(parameter.numel() for parameter in model.method_parameters())
    decoder = sum(parameter.numel() for parameter in model.heads.parameters())
    return {"method": method, "decoder": decoder, "total": method + decoder}
