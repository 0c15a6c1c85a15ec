"""Pretrains the embedded backbones on the drawn source: `python -m visprompt.pretraining vit` (or `resnet`).

The ViT first learns to paint in hidden patches (a masked autoencoder, He et al., CVPR 2022), because
supervised training alone hardly starts on 24-pixel pictures; both then learn the 112 source classes, with two
extra heads, thrown away at the end, that name the shape and the fill apart. One CPU thread each; the logs
beside the weights say how long it took.
"""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import timm
import torch
from torch import nn
from torch.nn import functional as F

from visprompt.architectures import build_embedded, weights_file
from visprompt.drawing import FILLS, SOURCE_CLASSES, draw, source_parts
from visprompt.errors import choose
from visprompt.outlines import CONTOURS, GLYPHS
from visprompt.tasks import Split, normalise

NAMES = {"vit": "vit_micro_patch4_24", "resnet": "resnet_micro_24"}


@dataclass(frozen=True)
class Pretraining:
    """Everything that decides the weights."""

    images: int = 60_000  # about 535 a class; fewer were learned by heart
    held_out: int = 4_000  # standard error of the source accuracy below 0.7 points
    image_seed: int = 1  # of the drawn source; the targets use other seeds and other drawings
    seed: int = 0  # of the start and of the order
    mean: float = 0.5  # with std, puts bytes on [-1, 1]; stated with the weights, users must repeat it
    std: float = 0.5
    batch: int = 128  # larger batches gain no speed on one CPU thread
    mae_epochs: int = 4  # of masked autoencoding; 0 for the ResNet, which starts without it
    mae_hidden: float = 0.67  # share of patches hidden: 24 of 36
    mae_rate: float = 2e-3  # AdamW peak; narrow networks stand high rates
    epochs: int = 7  # of supervised training
    rate: float = 1.5e-3  # AdamW peak
    weight_decay: float = 0.05  # the usual one for small ViTs
    warmup: float = 0.05  # share of the steps with a rising rate
    shift: int = 2  # pictures are moved by up to this many pixels, edges repeated
    side_loss: float = 0.5  # weight of the shape and fill heads' losses beside the 112 classes'


RECIPES = {
    "vit": Pretraining(),
    "resnet": Pretraining(mae_epochs=0, epochs=6, rate=3e-3),
}


def source(recipe: Pretraining) -> tuple[Split, Split]:
    """The drawn source for training and held out: two pairs of images (N, 3, 24, 24) uint8, labels (N,)."""
    pairs = []
    for stream, count in enumerate((recipe.images, recipe.held_out)):
        images, labels = draw("source", count, recipe.image_seed, stream)
        pairs.append((torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels)))
    return tuple(pairs)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, recipe: Pretraining) -> float:
    """Share of images (N, 3, H, W) uint8 whose largest logit is the label's."""
    model.eval()
    with torch.inference_mode():
        hits = sum((model(normalise(x, recipe.mean, recipe.std)).argmax(1) == y).sum().item()
                   for x, y in zip(images.split(500), labels.split(500), strict=True))
    return hits / len(labels)


class Painter(nn.Module):
    """A masked autoencoder around a timm ViT: hides patches, and paints them from what is left."""

    def __init__(self, vit: nn.Module, hidden: float):
        super().__init__()
        from timm.models.vision_transformer import Block
        self.vit, width, self.patches = vit, vit.embed_dim, vit.patch_embed.num_patches
        self.keep = round(self.patches * (1 - hidden))
        self.mask_token = nn.Parameter(torch.randn(width) * 0.02)
        self.places = nn.Parameter(torch.randn(self.patches, width) * 0.02)
        self.decoder = nn.Sequential(Block(width, 4), Block(width, 4), nn.LayerNorm(width))
        self.paint = nn.Linear(width, 3 * vit.patch_embed.patch_size[0] ** 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Mean squared error on the hidden patches of images (B, 3, H, W)."""
        vit, count = self.vit, len(images)
        order = torch.rand(count, self.patches).argsort(1)
        seen, hidden = order[:, :self.keep, None], order[:, self.keep:, None]
        tokens = vit.patch_embed(images) + vit.pos_embed[:, 1:]
        tokens = tokens.gather(1, seen.expand(-1, -1, tokens.shape[-1]))
        first = (vit.cls_token + vit.pos_embed[:, :1]).expand(count, -1, -1)
        tokens = vit.norm(vit.blocks(torch.cat([first, tokens], 1)))[:, 1:]
        canvas = self.mask_token.expand(count, self.patches, -1)
        canvas = canvas.scatter(1, seen.expand_as(tokens), tokens) + self.places
        painted = self.paint(self.decoder(canvas))
        side = vit.patch_embed.patch_size[0]
        wanted = F.unfold(images, side, stride=side).transpose(1, 2)
        where = hidden.expand(-1, -1, wanted.shape[-1])
        return F.mse_loss(painted.gather(1, where), wanted.gather(1, where))


class Student(nn.Module):
    """A timm model with two more heads on its pooled features, for the shape and the fill."""

    def __init__(self, model: nn.Module, side_loss: float):
        super().__init__()
        self.model, self.side_loss = model, side_loss
        self.shape_head = nn.Linear(model.num_features, CONTOURS + GLYPHS)
        self.fill_head = nn.Linear(model.num_features, len(FILLS) + 1)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Loss of images (B, 3, H, W) with source labels (B,)."""
        pooled = self.model.forward_head(self.model.forward_features(images), pre_logits=True)
        shape, fill = (torch.from_numpy(np.asarray(p)) for p in source_parts(labels.numpy()))
        side = F.cross_entropy(self.shape_head(pooled), shape) + F.cross_entropy(self.fill_head(pooled), fill)
        return F.cross_entropy(self.model.get_classifier()(pooled), labels) + self.side_loss * side


def _augment(images: torch.Tensor, shift: int) -> torch.Tensor:
    """Bytes (B, 3, S, S) moved by up to `shift` pixels, colours swapped, alike in groups of eight."""
    size = images.shape[-1]
    padded = F.pad(images.float(), (shift,) * 4, mode="replicate")
    moved = []
    for part in padded.split(8):
        dy, dx = torch.randint(0, 2 * shift + 1, (2,)).tolist()
        moved.append(part[:, torch.randperm(3), dy:dy + size, dx:dx + size])
    return torch.cat(moved)


def _fit(loss_of, parameters, data, recipe: Pretraining, epochs: int, rate: float, log, stage: str) -> None:
    """Minimise `loss_of(images, labels)`: AdamW, warm-up, cosine; `log(row)` is told every 100 steps."""
    images, labels = data
    parameters = list(parameters)
    groups = [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": recipe.weight_decay},
              {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    steps = epochs * (len(images) // recipe.batch)
    rising = max(1, round(recipe.warmup * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda s: min(
        (s + 1) / rising, 0.5 + 0.5 * np.cos(np.pi * max(0, s - rising) / max(1, steps - rising))))
    step, recent = 0, []
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for index in order[:len(order) // recipe.batch * recipe.batch].split(recipe.batch):
            batch = normalise(_augment(images[index], recipe.shift), recipe.mean, recipe.std)
            loss = loss_of(batch, labels[index])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            schedule.step()
            step, recent = step + 1, [*recent, loss.item()]
            if step % 100 == 0 or step == steps:
                log({"stage": stage, "step": step, "of": steps, "loss": round(sum(recent) / len(recent), 4)})
                recent = []


def _keep_memory() -> None:
    """Let glibc reuse freed memory; handing every activation back to the system cost a third of the time."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def pretrain(which: str, recipe: Pretraining | None = None, folder: Path | None = None) -> dict:
    """Train an embedded backbone from nothing and write its weights and its log.

    Args:
        which: "vit" or "resnet".
        recipe: other settings than RECIPES[which].
        folder: where to write; the place named in data_manifests/backbones.yaml unless given.

    Returns:
        The log: name, recipe, source accuracy, seconds, hardware, versions, curve.

    Raises:
        BadInput: `which` is neither.
    """
    recipe = recipe or RECIPES[choose("backbone to pretrain", which, NAMES)]
    name, began, curve = NAMES[which], time.time(), []
    _keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    train, held_out = source(recipe)
    model = build_embedded(name, SOURCE_CLASSES)
    model = model.to(memory_format=torch.channels_last)  # a quarter faster for convolutions on a CPU
    for block in getattr(model, "blocks", ()):
        block.attn.fused_attn = False  # 37 tokens: the plain form is a sixth faster on a CPU

    def log(row: dict) -> None:
        row["seconds"] = round(time.time() - began)
        if row["stage"] == "supervised" and row["step"] % 500 == 0:
            row["held_out"] = round(accuracy(model, held_out[0][:1000], held_out[1][:1000], recipe), 4)
            model.train()
        curve.append(row)
        print(json.dumps(row), flush=True)

    if recipe.mae_epochs:
        painter = Painter(model, recipe.mae_hidden)
        trained = (p for k, p in painter.named_parameters() if not k.startswith("vit.head"))
        _fit(lambda x, _: painter(x), trained, train, recipe,
             recipe.mae_epochs, recipe.mae_rate, log, "masked")
    student = Student(model, recipe.side_loss)
    _fit(student, student.parameters(), train, recipe, recipe.epochs, recipe.rate, log, "supervised")
    report = {
        "name": name, "recipe": asdict(recipe),
        "source_accuracy": round(accuracy(model, *held_out, recipe), 4),
        "held_out": recipe.held_out, "seconds": round(time.time() - began),
        "hardware": f"{os.cpu_count()}-core {platform.machine().replace('_', '-')} CPU, one thread",
        "versions": {m.__name__: m.__version__ for m in (torch, timm, np)}, "curve": curve,
    }
    save(model, report, weights_file(name) if folder is None else Path(folder) / weights_file(name).name)
    return report


def save(model: nn.Module, report: dict, path: Path) -> None:
    """Write weights (safetensors, float32, timm's names) and the report, each whole or not at all.

    The weights' metadata hold the report without its curve.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {k: v.contiguous() for k, v in model.state_dict().items()}
    note = {k: v if isinstance(v, str) else json.dumps(v) for k, v in report.items() if k != "curve"}
    for target, content in ((path, safetensors.torch.save(state, metadata=note)),
                            (path.with_suffix(".json"), (json.dumps(report, indent=1) + "\n").encode())):
        part = target.with_name(target.name + ".part")
        part.write_bytes(content)
        os.replace(part, target)


def main(arguments: list[str] | None = None) -> None:
    """The command line: which backbone, and a folder for the results."""
    parser = argparse.ArgumentParser(
        prog="python -m visprompt.pretraining", description="Pretrain an embedded backbone."
    )
    parser.add_argument("which", choices=sorted(NAMES))
    parser.add_argument("--folder", type=Path, help="where to write (default: data_manifests/weights)")
    given = parser.parse_args(arguments)
    report = pretrain(given.which, folder=given.folder)
    print(f"{report['name']}: {report['source_accuracy']:.1%} of {report['held_out']} held-out pictures, "
          f"{report['seconds']} s")


if __name__ == "__main__":
    main()
