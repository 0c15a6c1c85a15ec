"""Captions of drawn source pictures, and contrastive training of an image tower against them (CLIP,
Radford et al. 2021)."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from visprompt.data.drawing import FILLS, SIZE, source_parts
from visprompt.data.outlines import CONTOURS, GLYPHS

from .objectives import pooled

# red counts 1, green 2, blue 4
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
# How many words each place of a caption has: "a small striped red pentagon, above and left, on a
# green ground". The last fill is a glyph's, which has none. Every place has one more word, the
# unsaid one, whose number is the last.
PLACES = {
    "size": 2,
    "fill": len(FILLS) + 1,
    "colour": len(COLOURS),
    "shape": CONTOURS + GLYPHS,
    "row": 3,
    "column": 3,
    "ground": len(COLOURS),
}
LARGE = 74.0  # pixels that are covered: the median of the source
ALWAYS = ("shape", "fill")  # said in every caption
# share of the other words that a caption leaves out; with 0.3 they were enough, and no shape was
# learned
UNSAID = 0.6


def nearest_colour(colours: np.ndarray) -> np.ndarray:
    """Which of COLOURS, the corners of the cube of colours, is nearest to colours (n, 3) in [0, 1]:
    (n,)."""
    return (colours > 0.5) @ [1, 2, 4]


def describe(images: np.ndarray, labels: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """What can be said of source pictures: (n, places) numbers of words, in the order of PLACES.

    Args:
        images: (n, S, S, 3) uint8.
        labels: source classes (n,).
        masks: (n, S, S), how much of each pixel the drawn thing covers.
    """
    shape, fill = source_parts(labels)
    area, pixels = masks.sum((1, 2)), images / 255
    thing = (pixels * masks[..., None]).sum((1, 2)) / area[:, None]
    ground = (pixels * (1 - masks)[..., None]).sum((1, 2)) / (SIZE**2 - area)[:, None]
    at = np.arange(SIZE) + 0.5
    # centres lie within three of the middle
    thirds = lambda centre: np.digitize(centre, [SIZE / 2 - 1.0, SIZE / 2 + 1.0])
    row = thirds((masks.sum(2) * at).sum(1) / area)
    column = thirds((masks.sum(1) * at).sum(1) / area)
    words = [area > LARGE, fill, nearest_colour(thing), shape, row, column, nearest_colour(ground)]
    return np.stack(words, 1).astype(np.int64)


class TextTower(nn.Module):
    """A small transformer over the words of a caption: (B, places) -> (B, width). Thrown away after
    training."""

    def __init__(self, width: int):
        super().__init__()
        from timm.models.vision_transformer import Block

        self.words = nn.ModuleList(nn.Embedding(count + 1, width) for count in PLACES.values())
        self.end = nn.Parameter(torch.randn(width) * 0.02)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm = nn.LayerNorm(width)

    def forward(self, captions: torch.Tensor) -> torch.Tensor:
        tokens = torch.stack(
            [table(captions[:, place]) for place, table in enumerate(self.words)], 1
        )
        tokens = torch.cat([self.end.expand(len(captions), 1, -1), tokens], 1)
        return self.norm(self.blocks(tokens))[:, 0]


class Captioned(nn.Module):
    """CLIP around a timm ViT: a picture and its caption, told from those of the other pictures of a
    batch."""

    def __init__(self, vit: nn.Module, width: int = 64):
        super().__init__()
        self.vit, self.text = vit, TextTower(width)
        self.project, self.project_text = (
            nn.Linear(d, width, bias=False) for d in (vit.num_features, width)
        )
        # CLIP's start; at most 100, as there
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        self.register_buffer("unsaid", torch.tensor([*PLACES.values()]))
        self.always = [place in ALWAYS for place in PLACES]

    def forward(self, images: torch.Tensor, captions: torch.Tensor) -> torch.Tensor:
        """Symmetrised InfoNCE loss of images (B, 3, H, W) with what can be said of them (B,
        places)."""
        left_out = torch.rand(captions.shape) < UNSAID
        left_out[:, self.always] = False
        said = torch.where(left_out, self.unsaid, captions)
        seen = F.normalize(self.project(pooled(self.vit, images)), dim=1)
        read = F.normalize(self.project_text(self.text(said)), dim=1)
        scores = self.scale.exp().clamp(max=100) * seen @ read.T
        truth = torch.arange(len(images))
        return (F.cross_entropy(scores, truth) + F.cross_entropy(scores.T, truth)) / 2
