"""What the embedded backbones learn from: painting hidden patches, telling pictures apart, naming
classes."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from visprompt.data.drawing import FILLS, source_parts
from visprompt.data.outlines import CONTOURS, GLYPHS


def pooled(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Images (B, 3, H, W) -> the features (B, D) that a timm model's classifier reads."""
    return model.forward_head(model.forward_features(images), pre_logits=True)


class Painter(nn.Module):
    """A masked autoencoder around a timm ViT: hides patches, and paints them from what is left.

    With `normalised` each patch is wanted with mean 0 and variance 1 ("normalised pixels", He et
    al., Sec. 4), less where its variance is not far above `floor`.
    """

    def __init__(
        self, vit: nn.Module, hidden: float, normalised: bool = False, floor: float = 1e-6
    ):
        super().__init__()
        from timm.models.vision_transformer import Block

        self.vit, width, self.patches = vit, vit.embed_dim, vit.patch_embed.num_patches
        self.normalised, self.floor = normalised, floor
        self.keep = round(self.patches * (1 - hidden))
        self.mask_token = nn.Parameter(torch.randn(width) * 0.02)
        self.places = nn.Parameter(torch.randn(self.patches, width) * 0.02)
        self.decoder = nn.Sequential(Block(width, 4), Block(width, 4), nn.LayerNorm(width))
        self.paint = nn.Linear(width, 3 * vit.patch_embed.patch_size[0] ** 2)

    def forward(self, images: torch.Tensor, labels=None) -> torch.Tensor:
        """Mean squared error on the hidden patches of images (B, 3, H, W)."""
        vit, count = self.vit, len(images)
        order = torch.rand(count, self.patches).argsort(1)
        seen, hidden = order[:, : self.keep, None], order[:, self.keep :, None]
        tokens = vit.patch_embed(images) + vit.pos_embed[:, 1:]
        tokens = tokens.gather(1, seen.expand(-1, -1, tokens.shape[-1]))
        first = (vit.cls_token + vit.pos_embed[:, :1]).expand(count, -1, -1)
        tokens = vit.norm(vit.blocks(vit.norm_pre(torch.cat([first, tokens], 1))))[:, 1:]
        canvas = self.mask_token.expand(count, self.patches, -1)
        canvas = canvas.scatter(1, seen.expand_as(tokens), tokens) + self.places
        painted, wanted = self.paint(self.decoder(canvas)), self.wanted(images)
        where = hidden.expand(-1, -1, wanted.shape[-1])
        return F.mse_loss(painted.gather(1, where), wanted.gather(1, where))

    def wanted(self, images: torch.Tensor) -> torch.Tensor:
        """What is to be painted of images (B, 3, H, W): (B, patches, 3 P P)."""
        side = self.vit.patch_embed.patch_size[0]
        pixels = F.unfold(images, side, stride=side).transpose(1, 2)
        if not self.normalised:
            return pixels
        return (pixels - pixels.mean(-1, keepdim=True)) / (
            pixels.var(-1, keepdim=True) + self.floor
        ).sqrt()


class WindowPainter(nn.Module):
    """Masked painting around a timm Swin (as SimMIM, Xie et al. 2022): hidden patches are tokens
    that say nothing.

    They are hidden in squares of two by two, since single ones are painted from what touches them.
    What leaves every stage is brought to the size of the first, summed, and painted from: the last
    stage alone has one token of these pictures.
    """

    def __init__(self, swin: nn.Module, hidden: float):
        super().__init__()
        from timm.models.vision_transformer import Block

        self.swin, self.patch, self.side = (
            swin,
            swin.patch_embed.patch_size[0],
            swin.patch_embed.grid_size[0],
        )
        self.squares = self.side // 2
        self.hide, width = round(self.squares**2 * hidden), 64
        self.mask_token = nn.Parameter(torch.randn(swin.embed_dim) * 0.02)
        self.places = nn.Parameter(torch.randn(self.side**2, width) * 0.02)
        self.lateral = nn.ModuleList(
            nn.Linear(swin.embed_dim * 2**stage, width) for stage in range(len(swin.layers))
        )
        self.decoder = nn.Sequential(Block(width, 4), Block(width, 4), nn.LayerNorm(width))
        self.paint = nn.Linear(width, 3 * self.patch**2)

    def forward(self, images: torch.Tensor, labels=None) -> torch.Tensor:
        """Mean squared error on the hidden patches of images (B, 3, H, W)."""
        count, squares = len(images), self.squares
        order = torch.rand(count, squares**2).argsort(1)
        hidden = torch.zeros(count, squares**2, dtype=torch.bool).scatter_(
            1, order[:, : self.hide], True
        )
        hidden = (
            hidden.view(count, squares, squares).repeat_interleave(2, 1).repeat_interleave(2, 2)
        )
        x, canvas = (
            torch.where(hidden[..., None], self.mask_token, self.swin.patch_embed(images)),
            0,
        )
        for stage, lateral in zip(self.swin.layers, self.lateral, strict=True):
            x = stage(x)
            seen = self.swin.norm(x) if stage is self.swin.layers[-1] else x
            canvas = canvas + F.interpolate(
                lateral(seen).permute(0, 3, 1, 2), size=(self.side, self.side)
            )
        painted = self.paint(self.decoder(canvas.flatten(2).transpose(1, 2) + self.places))
        wanted = F.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        return F.mse_loss(painted[hidden.flatten(1)], wanted[hidden.flatten(1)])


class Student(nn.Module):
    """A timm model with two more heads on its pooled features, for the shape and the fill."""

    def __init__(self, model: nn.Module, side_loss: float):
        super().__init__()
        self.model, self.side_loss = model, side_loss
        self.shape_head = nn.Linear(model.num_features, CONTOURS + GLYPHS)
        self.fill_head = nn.Linear(model.num_features, len(FILLS) + 1)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Loss of images (B, 3, H, W) with source labels (B,)."""
        features = pooled(self.model, images)
        shape, fill = (torch.from_numpy(np.asarray(p)) for p in source_parts(labels.numpy()))
        side = F.cross_entropy(self.shape_head(features), shape) + F.cross_entropy(
            self.fill_head(features), fill
        )
        return (
            F.cross_entropy(self.model.get_classifier()(features), labels) + self.side_loss * side
        )


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with BatchNorm between and behind, ReLU between (MoCo-v3's projection and
    prediction)."""
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Contrast(nn.Module):
    """MoCo-v3 (Chen et al., ICCV 2021) around a timm ViT: two views of a picture, told from those
    of others.

    The patch embedding stays as it starts, which keeps training steady (their Sec. 4).
    """

    def __init__(self, vit: nn.Module, temperature: float, momentum: float):
        super().__init__()
        self.vit, self.temperature, self.momentum = vit, temperature, momentum
        vit.patch_embed.requires_grad_(False)
        self.project, self.predict = mlp(vit.embed_dim, 256, 256, 128), mlp(128, 256, 128)
        self.slow = copy.deepcopy(nn.ModuleList([vit, self.project])).requires_grad_(False)

    def embed(self, vit: nn.Module, project: nn.Module, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> (B, 128), from the class token."""
        return project(pooled(vit, images))

    def forward(self, images: torch.Tensor, labels=None) -> torch.Tensor:
        """Symmetrised InfoNCE loss of images (B, 3, H, W)."""
        both = torch.cat([view(images), view(images)])
        with torch.no_grad():
            for slow, fast in zip(
                self.slow.parameters(), [*self.vit.parameters(), *self.project.parameters()]
            ):
                slow.lerp_(fast, 1 - self.momentum)
            keys = F.normalize(self.embed(*self.slow, both), dim=1)
        queries = F.normalize(self.predict(self.embed(self.vit, self.project, both)), dim=1)
        truth, count = torch.arange(len(images)), len(images)
        first = F.cross_entropy(queries[:count] @ keys[count:].T / self.temperature, truth)
        second = F.cross_entropy(queries[count:] @ keys[:count].T / self.temperature, truth)
        return 2 * self.temperature * (first + second)


def view(images: torch.Tensor) -> torch.Tensor:
    """A random view of normalised images (B, 3, S, S): a crop, resized, its colours mixed, some
    turned to grey.

    The crop keeps 60 to 100 % of the area: a smaller one often misses what was drawn. Colours are
    what the pictures of a class do not share; without their change they would be all that is
    learned.
    """
    count, device = len(images), images.device
    side = torch.rand(count, device=device).mul(0.4).add(0.6).sqrt()
    place = (torch.rand(count, 2, device=device) * 2 - 1) * (1 - side)[:, None]
    affine = torch.zeros(count, 2, 3, device=device)
    affine[:, 0, 0] = affine[:, 1, 1] = side
    affine[:, :, 2] = place
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    images = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    mix = torch.eye(3, device=device) + 0.8 * torch.randn(count, 3, 3, device=device)
    mix = mix / mix.abs().sum(2, keepdim=True)
    grey = torch.rand(count, device=device) < 0.2
    mix[grey] = mix[grey][:, :1].expand(-1, 3, -1)
    flat = torch.einsum("bij,bjhw->bihw", mix, images)
    return flat * (0.6 + 0.8 * torch.rand(count, 1, 1, 1, device=device)) + 0.2 * torch.randn(
        count, 1, 1, 1, device=device
    )
