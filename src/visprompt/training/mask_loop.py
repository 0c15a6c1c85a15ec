"""The training loop of segmentation: any method and a decoder. Classification uses none of it."""

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ..chance import stream
from ..data.mask_tasks import Pair, SegmentationTask
from ..data.tasks import normalise
from ..errors import BadInput
from ..methods import dense
from ..methods.base import device_of
from ..models.blocks import NO_HOOKS
from ..records import Record, recorded
from .overlap import IGNORED, by_constant, check_labels, confusion, mean_overlap
from .segmentation_recipe import AUGMENTATIONS, SegmentationRecipe
from .segmenter import Segmenter, changes, count_trained
from .steps import autocast
from .windows import likely

TOGETHER = 100  # pictures of one size that are tested at once where they are small
EXAMPLES = 4  # test pictures whose predicted masks a record keeps
# of a crop's labelled pixels, and crops that are tried; MMSegmentation's
MOST_OF_A_CLASS, TRIES = (0.75, 10)
SCALED = (0.5, 2.0)  # random scale of a training picture


def segment(
    model: Segmenter,
    task: SegmentationTask,
    recipe: SegmentationRecipe,
    seed: int = 0,
    run: bool = True,
    about=None,
) -> Record | None:
    """Fit a segmenter to a task, or return the record of the same run.

    Args:
        run: False only looks for a record.
        about: what else the record should say; it decides nothing.

    Returns:
        A record of kind "segment" whose values are those of `fit_segmenter`; None if there is none
        and `run` is False.

    Raises:
        BadInput: another number of classes, or a network of another size than the recipe's crops.
    """
    if model.classes != task.classes:
        raise BadInput(
            f"{task.name} has {task.classes} classes; build the segmenter with "
            f"classes={task.classes}."
        )
    if model.size != recipe.crop:
        raise BadInput(
            f"the recipe's crops have {recipe.crop} pixels and the network {model.size}; "
            f"use intermediates.resized."
        )
    return recorded(
        "segment",
        settings_of(model, task, recipe, seed),
        partial(fit_segmenter, model, task, recipe, seed),
        data=task.fingerprint,
        weights=model.source.fingerprint,
        made=[model, model.source],
        about=about,
        run=run,
    )


def settings_of(
    model: Segmenter, task: SegmentationTask, recipe: SegmentationRecipe, seed: int
) -> dict:
    """The settings that the record of a run states."""
    backbone = model.source
    settings = {
        "method": model.slug,
        "method_settings": model.method.settings,
        "backbone": backbone.name,
        "normalisation": {"mean": backbone.mean, "std": backbone.std},
        "task": task.name,
        "train_size": len(task.train),
        "image_size": model.size,
        "recipe": recipe,
        "seed": seed,
    }
    settings |= {"changed": other} if (other := changes(model)) else {}
    return (
        {**settings, "architecture": backbone.architecture} if backbone.architecture else settings
    )


def fit_segmenter(
    model: Segmenter, task: SegmentationTask, recipe: SegmentationRecipe, seed: int
) -> dict:
    """Train, then evaluate once, after the last step.

    Returns:
        `test` and `test_many`, single- and multi-scale mIoU in percent on the test split; `val`,
        single-scale; `constant`, the best mIoU of predicting one class everywhere; `counts`, the
        test split's confusion matrix; `predicted`, the masks of the first EXAMPLES test images if
        they are small; `loss`, the mean of each tenth of the steps; the number of trained
        `parameters`; `fit_seconds`.
    """
    begun, prune, losses = time.perf_counter(), None, []
    while True:  # once, but for a method that prunes and trains again from the start
        model.reset(seed)
        prepare(model, task, recipe, stream(seed, "preparation"))
        if prune is not None:
            prune()
        losses += train_segmenter(model, task.train, recipe, stream(seed, "order"))
        prune = model.method.prune()
        if prune is None:
            break
    counts = test(model, task.test, recipe)
    return {
        "test": mean_overlap(counts),
        "test_many": mean_overlap(test(model, task.test, recipe, many=True)),
        "val": mean_overlap(test(model, task.val, recipe)),
        "constant": by_constant(counts),
        "counts": counts.tolist(),
        "predicted": examples(model, task, recipe),
        "loss": losses,
        "parameters": count_trained(model),
        "fit_seconds": round(time.perf_counter() - begun, 3),
    }


@torch.no_grad()
def prepare(
    model: Segmenter, task: SegmentationTask, recipe: SegmentationRecipe, generator: torch.Generator
) -> None:
    """Show the method whole training images, resized to the crop's size, before the first step."""
    device, backbone, chosen = (
        device_of(model.heads),
        model.source,
        range(min(len(task.train), recipe.seen_first)),
    )
    pairs = [squared(task.train[i], recipe.crop) for i in chosen]
    pictures = normalise(
        torch.stack([picture for picture, _ in pairs]), backbone.mean, backbone.std
    )
    masks = torch.stack([mask for _, mask in pairs])
    if not model.guided:
        labels = masks.flatten(1).long().mode(-1).values.to(device)
        return model.method.prepare(backbone, pictures, labels, generator)
    labels = dense.patch_labels(masks, *model.grid).flatten().to(device)
    parts = (
        backbone.run(backbone.stem(part.to(device)), Whole()) for part in pictures.split(TOGETHER)
    )
    rows, columns = model.grid
    features = torch.cat([tokens[:, -rows * columns :].flatten(0, 1) for tokens in parts])
    kept = labels != IGNORED
    return dense.prepare(model.method, features[kept], labels[kept], generator)


class Whole(type(NO_HOOKS)):  # type: ignore[misc]
    """No method; the last block computes every token."""

    trims = False


def squared(pair: Pair, size: int) -> Pair:
    """An image and its mask, resized to size x size."""
    picture, mask = pair
    if picture.shape[-1] == picture.shape[-2] == size:
        return pair
    grown = F.interpolate(picture[None].float(), (size, size), mode="bilinear", antialias=True)[0]
    return grown.round().clamp(0, 255).to(torch.uint8), F.interpolate(
        mask[None, None].float(), (size, size)
    )[0, 0].to(mask.dtype)


def train_segmenter(
    model: Segmenter, split: Sequence[Pair], recipe: SegmentationRecipe, generator: torch.Generator
) -> list[float]:
    """The training steps.

    Returns:
        The mean loss of each tenth of the steps.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    device, backbone = device_of(model.heads), model.source
    optimizer, scheduler = optimizer_of(model, recipe)
    steps, losses, tenth = 0, [], -(-recipe.iterations // 10)
    while steps < recipe.iterations:
        model.tuned.backbone.train(model.method.trains_backbone)
        model.method.train()
        model.heads.train()
        for pictures, masks in batches(split, recipe, backbone, generator, model.classes):
            with autocast(recipe, device):
                pixels = normalise(pictures.to(device), backbone.mean, backbone.std)
                loss = model.training_loss(pixels, masks.to(device), IGNORED)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())
            steps += 1
            if steps % tenth == 0 or steps == recipe.iterations:
                checked(losses[-tenth:], model.slug, recipe, steps)
            if steps == recipe.iterations:
                break
        model.method.after_epoch()
    model.eval()
    return [
        round(torch.stack(losses[at : at + tenth]).mean().item(), 6)
        for at in range(0, steps, tenth)
    ]


def checked(losses: list[torch.Tensor], slug: str, recipe: SegmentationRecipe, steps: int) -> None:
    """Check that the losses of some steps are finite.

    Raises:
        FloatingPointError: one is not; the message names method, rates and step.
    """
    mean = torch.stack(losses).mean().item()
    if not math.isfinite(mean):
        raise FloatingPointError(
            f"the loss of {slug} is {mean} after step {steps}; lower learning_rate (now "
            f"{recipe.learning_rate}) or "
            f"head_rate (now {recipe.head_rate})."
        )


def optimizer_of(model: Segmenter, recipe: SegmentationRecipe):
    """The optimizer, and the poly schedule with linear warm-up, never below `last_rate`."""
    groups: list[dict[str, Any]] = [
        {"params": list(model.heads.parameters()), "lr": recipe.head_rate}
    ]
    if model.method_parameters():
        if recipe.learning_rate is None:
            raise BadInput(f"{model.slug} trains parameters of its own; give learning_rate.")
        groups.append({"params": model.method_parameters(), "lr": recipe.learning_rate})
    if recipe.optimizer == "adam":
        optimizer = torch.optim.AdamW(groups, weight_decay=recipe.weight_decay, fused=True)
    else:
        optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=recipe.weight_decay)
    warm = round(recipe.warmup * recipe.iterations)

    def factor(step: int, rate: float) -> float:
        falling = (1 - min(step / recipe.iterations, 1)) ** recipe.power
        return max(falling, recipe.last_rate / rate) * min((step + 1) / max(warm, 1), 1)

    factors: list[Any] = [partial(factor, rate=group["lr"]) for group in groups]
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factors)


def batches(
    split: Sequence[Pair], recipe: SegmentationRecipe, backbone, generator, classes: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """An epoch of shuffled batches: images (B, 3, S, S) and masks (B, S, S), both uint8."""
    for chosen in torch.randperm(len(split), generator=generator).split(recipe.batch_size):
        if len(chosen) == 1 and len(split) > 1:
            continue  # BatchNorm of one picture is no statistic of anything
        pairs = []
        for number in chosen.tolist():
            picture, mask = split[number]
            check_labels(mask, classes, where=f"the mask of training picture {number}")
            pairs.append(cut(fitted(picture, mask, recipe), recipe, backbone, generator))
        yield (
            torch.stack([picture for picture, _ in pairs]),
            torch.stack([mask for _, mask in pairs]),
        )


def fitted(picture: torch.Tensor, mask: torch.Tensor, recipe: SegmentationRecipe) -> Pair:
    """An image resized to the recipe's short side, and its mask.

    Raises:
        BadInput: image and mask differ in size.
    """
    if mask.shape != picture.shape[-2:]:
        sizes = [f"{side[-1]} x {side[-2]}" for side in (mask.shape, picture.shape)]
        raise BadInput(
            f"a mask is {sizes[0]} pixels and its picture {sizes[1]}; give a mask of the "
            f"picture's size."
        )
    return scaled(picture, mask, wanted(picture.shape[-2:], recipe))


def wanted(size: Sequence[int], recipe: SegmentationRecipe) -> float:
    """The factor that brings (H, W) to the recipe's short side, within its long side."""
    if recipe.short_side is None:
        return 1.0
    return min(recipe.short_side / min(size), (recipe.long_side or math.inf) / max(size))


def scaled(picture: torch.Tensor, mask: torch.Tensor, factor: float) -> Pair:
    """Image (bilinear) and mask (nearest) resized by a factor."""
    if factor == 1:
        return picture, mask
    size = tuple(max(1, round(side * factor)) for side in picture.shape[-2:])
    grown = F.interpolate(picture[None].float(), size, mode="bilinear", antialias=factor < 1)[0]
    labels = F.interpolate(mask[None, None].float(), size, mode="nearest-exact")[0, 0]
    return grown.round().clamp(0, 255).to(torch.uint8), labels.to(mask.dtype)


def cut(pair: Pair, recipe: SegmentationRecipe, backbone, generator: torch.Generator) -> Pair:
    """A random training crop: image (3, crop, crop) and mask (crop, crop)."""
    picture, mask = pair
    draw = lambda: torch.rand((), generator=generator).item()
    size = recipe.crop
    if recipe.augmentation == "none":
        if picture.shape[-2:] != (size, size):
            raise BadInput(
                f"a training picture is not {size} x {size}; give "
                f"augmentation={AUGMENTATIONS[1]!r}."
            )
        return picture, mask
    picture, mask = scaled(picture, mask, SCALED[0] + draw() * (SCALED[1] - SCALED[0]))
    for _ in range(TRIES):
        y, x = (int(draw() * (max(side - size, 0) + 1)) for side in mask.shape)
        part = mask[y : y + size, x : x + size]
        labels, counts = part[part != IGNORED].unique(return_counts=True)
        if len(labels) > 1 and counts.max() < MOST_OF_A_CLASS * counts.sum():
            break
    picture = picture[:, y : y + size, x : x + size]
    if draw() < 0.5:
        picture, part = picture.flip(-1), part.flip(-1)
    picture = coloured(picture, generator)
    right, below = size - part.shape[1], size - part.shape[0]
    mean = (255 * torch.tensor(backbone.mean)).round().to(torch.uint8)[:, None, None]
    canvas = mean.expand(3, size, size).clone()
    canvas[:, : size - below, : size - right] = picture
    return canvas, F.pad(part, (0, right, 0, below), value=IGNORED)


def coloured(picture: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Brightness, contrast, saturation and hue changed at random, as in SSD."""
    from torchvision.transforms import v2  # slow to import

    with torch.random.fork_rng(devices=[]):  # torchvision asks the global generator
        torch.manual_seed(torch.randint(2**62, (), generator=generator).item())
        return v2.RandomPhotometricDistort()(picture)


def seen(
    split: Sequence[Pair], recipe: SegmentationRecipe, backbone
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Normalised images (B, 3, H, W) and original masks (B, H', W'), batched by size."""
    group: list[Pair] = []
    for number in range(len(split)):
        picture, mask = split[number]
        small = fitted(picture, mask, recipe)[0]
        if group and (
            group[0][0].shape != small.shape
            or group[0][1].shape != mask.shape
            or len(group) == TOGETHER
        ):
            yield (
                normalise(torch.stack([p for p, _ in group]), backbone.mean, backbone.std),
                torch.stack([m for _, m in group]),
            )
            group = []
        group.append((small, mask))
        if max(small.shape) > 64:  # a large picture goes alone
            yield normalise(small[None], backbone.mean, backbone.std), mask[None]
            group = []
    if group:
        yield (
            normalise(torch.stack([p for p, _ in group]), backbone.mean, backbone.std),
            torch.stack([m for _, m in group]),
        )


@torch.no_grad()
def test(
    model: Segmenter, split: Sequence[Pair], recipe: SegmentationRecipe, many: bool = False
) -> torch.Tensor:
    """Confusion matrix (C, C) of a split in pixels, by (true class, predicted class)."""
    device, counts = (
        device_of(model.heads),
        torch.zeros(model.classes, model.classes, dtype=torch.long),
    )
    model.eval()
    for pictures, masks in seen(split, recipe, model.source):
        counts += confusion(
            predicted(model, pictures.to(device), recipe, masks.shape[-2:], many),
            masks,
            model.classes,
        )
    return counts


def predicted(
    model: Segmenter, pictures: torch.Tensor, recipe: SegmentationRecipe, out, many: bool = False
) -> torch.Tensor:
    """The most probable class of every pixel, (B, *out), on the CPU."""
    with autocast(recipe, pictures.device):
        return (
            likely(model, pictures, model.size, recipe.evaluation, tuple(out), many).argmax(1).cpu()
        )


@torch.no_grad()
def examples(model: Segmenter, task: SegmentationTask, recipe: SegmentationRecipe) -> list[str]:
    """Predicted masks of the first test images as texts of S x S letters; none for large images."""
    if model.size > 64:
        return []
    masks = []
    for number in range(min(EXAMPLES, len(task.test))):
        picture, mask = task.test[number]
        pixels = normalise(picture[None], model.source.mean, model.source.std).to(
            device_of(model.heads)
        )
        labels = predicted(model, pixels, recipe, mask.shape)[0]
        masks.append("".join(chr(ord("a") + label) for label in labels.flatten().tolist()))
    return masks
