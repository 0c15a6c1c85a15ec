"""Pretrains the embedded backbones on the drawn source:
`python -m visbook.pretraining.pretrain vit_micro_patch4_24`.

A recipe has up to four stages, each with its own objective (`objectives`, `captions`): painting
hidden patches, telling pictures apart, telling which caption is whose, and the 112 source classes,
with two extra heads, thrown away at the end, that name the shape and the fill apart. Supervised
training alone hardly starts on 24-pixel pictures, so supervised transformers paint first. One CPU
thread each; the logs beside the weights say how long it took.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import safetensors.torch
import timm
import torch
from torch import nn

from visprompt.data.drawing import SOURCE_CLASSES, draw
from visprompt.data.leaves import draw_leaves
from visprompt.data.tasks import Split
from visprompt.errors import choose
from visprompt.models.embedded import build_embedded, weights_file

from .captions import Captioned, describe
from .knowledge import accuracy, few_labels_accuracy, probe_accuracy
from .objectives import Contrast, Painter, Student, WindowPainter
from .steps import fit, keep_memory


@dataclass(frozen=True)
class Pretraining:
    """Everything that decides the weights."""

    pictures: str = "source"  # or "leaves": several things that hide each other, as on photographs
    images: int = 60_000  # about 535 a class; fewer were learned by heart
    held_out: int = 4_000  # standard error of the source accuracy below 0.7 points
    image_seed: int = 1  # of the drawn source; the targets use other seeds and other drawings
    seed: int = 0  # of the start and of the order
    # with std, puts bytes on [-1, 1]; stated with the weights, users must repeat it
    mean: float = 0.5
    std: float = 0.5
    batch: int = 128  # larger batches gain no speed on one CPU thread
    init: str = ""  # an embedded backbone whose weights it starts from; empty: random
    mae_epochs: int = 0  # of masked autoencoding
    mae_hidden: float = 0.67  # share of patches hidden: 24 of 36
    mae_normalised: bool = True  # better features than raw pixels (He et al., Sec. 4)
    # added to a patch's variance (theirs); more, or flat patches ask for their grain
    mae_floor: float = 1e-6
    mae_rate: float = 2e-3  # AdamW peak; narrow networks stand high rates
    moco_epochs: int = 0  # of MoCo-v3, which sees every picture twice
    moco_temperature: float = 0.2  # MoCo-v3's
    # MoCo-v3's start value; fewer steps than theirs do not pay for more
    moco_momentum: float = 0.99
    # AdamW peak; unlike painting, it breaks down at twice that on such networks
    moco_rate: float = 1e-3
    caption_epochs: int = 0  # of CLIP's training against captions
    caption_rate: float = 1e-3  # AdamW peak
    epochs: int = 0  # of supervised training
    rate: float = 1.5e-3  # AdamW peak
    weight_decay: float = 0.05  # the usual one for small ViTs
    warmup: float = 0.05  # share of the steps with a rising rate
    shift: int = 2  # pictures are moved by up to this many pixels, edges repeated
    side_loss: float = 0.5  # weight of the shape and fill heads' losses beside the 112 classes'
    # that weights trained without labels are fine-tuned with, to see what they are worth
    few_labels: int = 1000
    few_epochs: int = 40  # of that fine-tuning
    # 128 takes too few steps: the first network measured came to 9 % by it, and by 32 to 20 %
    few_batch: int = 32


MASKED = Pretraining(mae_epochs=8)
LEAVES = Pretraining(pictures="leaves", mae_epochs=40, mae_floor=0.01)  # grain's variance is 0.004
RECIPES = {
    "vit_micro_patch4_24": Pretraining(mae_epochs=4, mae_normalised=False, epochs=7),
    "vit_micro_patch4_24.mae_leaves": LEAVES,
    "vit_micro_patch4_24.mocov3_leaves": replace(
        LEAVES, init="vit_micro_patch4_24.mae_leaves", mae_epochs=0, moco_epochs=5
    ),
    "vit_nano_patch4_24.mae": MASKED,
    "vit_nano_patch4_24.mae_leaves": replace(
        LEAVES, mae_epochs=120
    ),  # 40 were too few: the smallest learns slowest
    "vit_nano_patch4_24": Pretraining(init="vit_nano_patch4_24.mae", epochs=5),
    "vit_mini_patch4_24.mae": MASKED,
    "vit_mini_patch4_24.mae_leaves": LEAVES,
    "vit_mini_patch4_24": Pretraining(init="vit_mini_patch4_24.mae", epochs=3),
    "vit_micro_patch4_24.clip": Pretraining(mae_epochs=4, mae_normalised=False, caption_epochs=6),
    "swin_micro_patch3_24": Pretraining(
        mae_epochs=4, mae_hidden=0.6, mae_normalised=False, epochs=10
    ),
    "resnet_micro_24": Pretraining(epochs=6, rate=3e-3),
}


def captions(recipe: Pretraining) -> torch.Tensor:
    """What can be said of the pictures that `source` gives for training: (N, places)."""
    return torch.from_numpy(
        describe(*draw("source", recipe.images, recipe.image_seed, 0, with_masks=True))
    )


def source(recipe: Pretraining) -> tuple[Split, Split]:
    """The drawn source for training and held out: two pairs of images (N, 3, 24, 24) uint8, labels
    (N,)."""
    pairs, drawn = [], partial(draw, "source") if recipe.pictures == "source" else draw_leaves
    for stream, count in enumerate((recipe.images, recipe.held_out)):
        images, labels = drawn(count, recipe.image_seed, stream)
        pairs.append(
            (torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels))
        )
    return tuple(pairs)


def stages(model: nn.Module, recipe: Pretraining) -> Iterator[tuple[str, nn.Module, int, float]]:
    """Name, objective, epochs and rate of each stage of a recipe, the objective made when its turn
    comes."""
    if recipe.mae_epochs:
        windows = hasattr(model, "layers")
        kind, more = (
            (WindowPainter, ()) if windows else (Painter, (recipe.mae_normalised, recipe.mae_floor))
        )
        painter = kind(model, recipe.mae_hidden, *more)
        yield "masked", painter, recipe.mae_epochs, recipe.mae_rate
    if recipe.moco_epochs:
        contrast = Contrast(model, recipe.moco_temperature, recipe.moco_momentum)
        yield "contrastive", contrast, recipe.moco_epochs, recipe.moco_rate
    if recipe.caption_epochs:
        yield "captions", Captioned(model), recipe.caption_epochs, recipe.caption_rate
    if recipe.epochs:
        yield "supervised", Student(model, recipe.side_loss), recipe.epochs, recipe.rate


def pretrain(
    name: str, recipe: Pretraining | None = None, folder: Path | None = None, compiled: bool = False
) -> dict:
    """Train an embedded backbone and write its weights and its log.

    Args:
        name: one of RECIPES.
        recipe: other settings than RECIPES[name].
        folder: where to write; the place named in data_manifests/backbones.yaml unless given.
        compiled: by torch's compiler, a third faster with the last digits of their own; it wants a
            C++ compiler.

    Returns:
        The log: name, recipe, accuracies, seconds, hardware, versions, curve. "source_accuracy" is
            that of the network's own head and None without supervised training; "probe_accuracy"
            that of a linear probe; "few_labels_accuracy" and "scratch_accuracy" those of
            fine-tuning with 1,000 labels from these weights and from a random start, where training
            saw no labels.

    Raises: BadInput: no recipe has that name.
    """
    recipe = recipe or RECIPES[choose("backbone to pretrain", name, RECIPES)]
    began, curve = time.time(), []
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    train, held_out = source(recipe)
    model = build_embedded(name, SOURCE_CLASSES)
    if recipe.init:
        model.load_state_dict(safetensors.torch.load_file(weights_file(recipe.init)))
    # a quarter faster for convolutions on a CPU
    model = model.to(memory_format=torch.channels_last)

    def log(row: dict) -> None:
        row["seconds"] = round(time.time() - began)
        if row["stage"] == "supervised" and row["step"] % 500 == 0:
            row["held_out"] = round(
                accuracy(model, held_out[0][:1000], held_out[1][:1000], recipe), 4
            )
            model.train()
        curve.append(row)
        print(json.dumps(row), flush=True)

    for stage, objective, epochs, rate in stages(model, recipe):
        unused = ("vit.head", "swin.head")
        trained = [
            p
            for k, p in objective.named_parameters()
            if p.requires_grad and not k.startswith(unused)
        ]
        data = (train[0], captions(recipe)) if stage == "captions" else train
        if compiled:
            objective.compile()
        fit(objective, trained, data, recipe, epochs, rate, log, stage)
    seconds = round(time.time() - began)
    report = {
        "name": name,
        "recipe": asdict(recipe),
        "source_accuracy": round(accuracy(model, *held_out, recipe), 4) if recipe.epochs else None,
        "probe_accuracy": round(probe_accuracy(model, train, held_out, recipe), 4),
        **(
            {}
            if recipe.epochs or recipe.caption_epochs
            else few_labels(name, model, train, held_out, recipe)
        ),
        "held_out": recipe.held_out,
        "compiled": compiled,
        "seconds": seconds,
        "hardware": f"{os.cpu_count()}-core {platform.machine().replace('_', '-')} CPU, one thread",
        "versions": {m.__name__: m.__version__ for m in (torch, timm, np)},
        "curve": curve,
    }
    save(
        model,
        report,
        weights_file(name) if folder is None else Path(folder) / weights_file(name).name,
    )
    return report


def few_labels(
    name: str, model: nn.Module, train: Split, held_out: Split, recipe: Pretraining
) -> dict[str, float]:
    """Whether a network that saw no labels is a start for few of them: its held-out accuracy and a
    random start's."""
    torch.manual_seed(recipe.seed)
    starts = {
        "few_labels_accuracy": model,
        "scratch_accuracy": build_embedded(name, SOURCE_CLASSES),
    }
    return {
        key: round(few_labels_accuracy(start, train, held_out, recipe), 4)
        for key, start in starts.items()
    }


def save(model: nn.Module, report: dict, path: Path) -> None:
    """Write weights (safetensors, float32, timm's names) and the report, each whole or not at all.

    The weights' metadata hold the report without its curve.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {k: v.contiguous() for k, v in model.state_dict().items()}
    note = {
        k: v if isinstance(v, str) else json.dumps(v) for k, v in report.items() if k != "curve"
    }
    for target, content in (
        (path, safetensors.torch.save(state, metadata=note)),
        (path.with_suffix(".json"), (json.dumps(report, indent=1) + "\n").encode()),
    ):
        part = target.with_name(target.name + ".part")
        part.write_bytes(content)
        os.replace(part, target)


def main(arguments: list[str] | None = None) -> None:
    """The command line: which backbone, and a folder for the results."""
    parser = argparse.ArgumentParser(
        prog="python -m visbook.pretraining.pretrain", description="Pretrain an embedded backbone."
    )
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument(
        "--folder", type=Path, help="where to write (default: data_manifests/weights)"
    )
    parser.add_argument(
        "--compile", action="store_true", help="a third faster; wants a C++ compiler"
    )
    given = parser.parse_args(arguments)
    report = pretrain(given.name, folder=given.folder, compiled=given.compile)
    print(
        f"{report['name']}: a linear probe names {report['probe_accuracy']:.1%} of "
        f"{report['held_out']} held-out "
        f"pictures, {report['seconds']} s"
    )


if __name__ == "__main__":
    main()
