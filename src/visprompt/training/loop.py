"""One loop that fits any method to any task."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..chance import stream
from ..checks import require
from ..data.tasks import Task, normalise
from ..errors import BadInput, choose
from ..methods import TunedModel
from ..methods.parameters import count_parameters
from ..models import pooling
from ..records import Record, recorded, test_images, watching
from ..records.watch import note
from . import recipe_extras
from .recipe import Recipe, heeded, settled, with_own_rate


def fit_model(
    model: TunedModel,
    task: Task,
    recipe: Recipe = Recipe(),
    seed: int = 0,
    *,
    prepared_on: Task | None = None,
    **more,
) -> dict:
    """Fit a model to a task, at the method's own learning rate if the recipe names none.

    The model then knows its task's class names.

    Args:
        prepared_on: see `tune`.
        more: `cache` and `watch`, see `fit`.

    Returns:
        The values that `fit` returns.

    Raises:
        BadInput: more classes than the head has, images of another size than the backbone's, or an
            unknown argument.
    """
    for name in more:
        choose("argument of fit", name, ["cache", "watch"])
    require("fit's cache", more.get("cache", True), bool)
    if not callable(more.get("watch", print)):
        raise BadInput(
            f"fit's watch must be a function of the number of epochs, not {more['watch']!r}."
        )
    if next(model.parameters()).is_meta:
        raise BadInput(
            f"this {model.slug} has shapes alone; build it on a backbone loaded without "
            f"device='meta'."
        )
    if task.classes > model.num_classes:
        raise BadInput(
            f"{task.name} has {task.classes} classes; build the method with "
            f"num_classes={task.classes}."
        )
    recipe = with_own_rate(recipe, model)
    values = fitting_of(recipe, model)(
        model,
        task,
        recipe,
        seed,
        prepared_on=prepared_on,
        **{"cache": may_cache(model, task, recipe), **more},
    )
    model.task = {
        "name": task.name,
        "class_names": list(task.class_names),
        "image_size": task.size,
        "resize": task.resize,
    }
    return values


def tune(
    model: TunedModel,
    task: Task,
    recipe: Recipe,
    seed: int = 0,
    run: bool = True,
    prepared_on: Task | None = None,
    about: dict | None = None,
) -> Record | None:
    """Fit a model to a task, or return the record of the same run.

    Args:
        run: False only looks for a record.
        prepared_on: the task whose training images the method sees before the first step, if it is
            another (SPT Figure 3b).
        about: what else the record should say, such as the profile; it decides nothing.

    Returns:
        A record whose values are those of `fit`; None if there is none and `run` is False.

    Raises:
        BadInput: labels outside the head, images of another size than the backbone's, or an
            argument of another type.
    """
    for name, value, kind in (
        ("model", model, TunedModel),
        ("task", task, Task),
        ("recipe", recipe, Recipe),
        ("seed", seed, int),
    ):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadInput(
                f"tune's {name} must be a {kind.__name__}, not {type(value).__name__}; see "
                f"its docstring."
            )
    recipe = heeded(recipe, pooling.averages(model.source))
    recipe = settled(with_own_rate(recipe, model), model.slug, model.source.family)
    return recorded(
        "tune",
        run_settings(model, task, recipe, seed, prepared_on),
        partial(
            fitting_of(recipe, model),
            model,
            task,
            recipe,
            seed,
            cache=may_cache(model, task, recipe),
            prepared_on=prepared_on,
        ),
        data=data_of(task.fingerprint, prepared_on and prepared_on.fingerprint),  # type: ignore[arg-type]
        weights=model.source.fingerprint,
        made=[model, model.source],
        about=about,
        run=run,
    )


def may_cache(model: TunedModel, task: Task, recipe: Recipe) -> bool:
    """Whether the cached activations of all splits together stay below the recipe's `cache_gib`."""
    return (
        activation_gib(model, sum(len(labels) for _, labels in (task.train, task.val, task.test)))
        <= recipe.cache_gib
    )


def fit_with_extras(model: TunedModel, task: Task, recipe: Recipe, seed: int, **more) -> dict:
    """`fit`, with what the recipe needs beyond the plain loop; see `recipe_extras`."""
    with recipe_extras.within(model, task, recipe, seed):
        return fit(model, task, recipe, seed, **more)


def fit_pooled(model: TunedModel, task: Task, recipe: Recipe, seed: int, **more) -> dict:
    """`fit`, with the recipe's order of pooling and nothing else beyond the plain loop."""
    with recipe_extras.pooled(model, task, recipe, seed):
        return fit(model, task, recipe, seed, **more)


def fitting_of(recipe: Recipe, model: TunedModel) -> Callable[..., dict]:
    """The one of `fit`, `fit_pooled` and `fit_with_extras` that a recipe needs for a model."""
    needed = recipe_extras.needed(recipe, model)
    return {
        None: fit,
        recipe_extras.pooled: fit_pooled,
        recipe_extras.within: fit_with_extras,
    }[needed]


def data_of(task: str, prepared_on: str | None = None) -> str:
    """Identity of the data in a record: fingerprints of the task and of the one prepared on."""
    return task if prepared_on is None else f"{task}, prepared on {prepared_on}"


def run_settings(
    model: TunedModel, task: Task, recipe: Recipe, seed: int, prepared_on: Task | None = None
) -> dict:
    """The settings that the record of a run states; see `settings_of`.

    Raises:
        BadInput: labels outside the head.
    """
    if task.classes > model.num_classes:
        raise BadInput(
            f"{task.name} has {task.classes} classes; build the method with "
            f"num_classes={task.classes}."
        )
    facts = {
        "task": task.name,
        "train_size": len(task.train[1]),
        "resize": task.resize,
        "image_size": task.size,
    }
    other = None if prepared_on is None else prepared_on.name
    settings = settings_of(
        model.slug, model.method.settings, model.source, facts, recipe, seed, other
    )
    if model.num_classes != task.classes:
        settings["num_classes"] = model.num_classes
    if model.changes:
        settings["changed"] = model.changes
    return settings


def settings_of(
    slug: str, chosen, backbone, facts: dict, recipe: Recipe, seed: int, prepared_on: str | None
) -> dict:
    """The settings of a record of kind "tune"; needs neither a model nor images.

    Args:
        chosen: the method's `Settings`.
        facts: "task", "train_size", "resize" and "image_size".
    """
    settings = {
        "method": slug,
        "method_settings": chosen,
        "backbone": backbone.name,
        "normalisation": {"mean": backbone.mean, "std": backbone.std},
        **facts,
        "recipe": recipe,
        "seed": seed,
    }
    if backbone.architecture:
        settings["architecture"] = backbone.architecture
    return settings if prepared_on is None else {**settings, "prepared_on": prepared_on}


class Shared:
    """Activations below the first trained block, kept on their device for later runs."""

    def __init__(self):
        self.kept: dict[tuple, tuple] = {}  # what was computed, and the code that did

    def get(self, key: tuple, compute: Callable[[], torch.Tensor], gib: float) -> torch.Tensor:
        """The tensor of a key, computed if it is not kept; at most `gib` GiB are kept."""
        kept = self.kept.pop(key, None)
        if kept is None:
            with watching() as seen:
                kept = compute(), seen
        else:
            note(kept[1])
        self.kept[key] = kept
        while (
            len(self.kept) > 1 and sum(part.nbytes for part, _ in self.kept.values()) > gib * 2**30
        ):
            del self.kept[next(iter(self.kept))]
        return kept[0]

    def leave(self, task: str) -> None:
        """Drop the activations of the task with this fingerprint."""
        self.kept = {key: kept for key, kept in self.kept.items() if task not in key}


SHARED = Shared()


def fit(
    model: TunedModel,
    task: Task,
    recipe: Recipe,
    seed: int,
    *,
    cache: bool = True,
    prepared_on: Task | None = None,
    watch: Callable[[int], None] = lambda epoch: None,
) -> dict:
    """Train, then evaluate: validation images after each epoch, test images once, at the end.

    Args:
        cache: whether activations below the first trained block are computed once; False is the
            plain form with equal results.
        watch: called with the number of finished epochs: 0 before the first step, and after each
            epoch.

    Returns:
        `test` and `val` accuracy in percent after the last epoch; `right`, which test images were
        classified correctly (see `records.test_images`); `val_by_epoch`; the training `loss` of
        each epoch; the number of trained `parameters`; `cached_below` (the first trained block if
        the activations below it were cached, else None); `fit_seconds`.
    """
    start, recipe = time.perf_counter(), settled(recipe, model.slug, model.source.family)
    backbone, device = model.source, next(model.parameters()).device
    first, labels = model.method.start, task.train[1].to(device)
    cached = cache and first >= 0 and recipe.augmentation == "none"
    cached = cached and activation_gib(model, len(labels)) <= recipe.cache_gib
    weights = backbone.fingerprint if cached else None

    def pixels(images):
        return normalise(images, backbone.mean, backbone.std)

    def inputs(split):
        """Bytes, or activations that other runs share."""
        images = getattr(task, split)[0]
        if not cached:
            return images.to(device) if split == "train" else images
        # with the name, since random weights are known by their seed alone
        key = (
            backbone.name,
            backbone.mean,
            backbone.std,
            weights,
            task.fingerprint,
            split,
            first,
            device,
        )
        return SHARED.get(
            key,
            lambda: in_batches(lambda x: model.below(pixels(x)), images, device),
            recipe.cache_gib,
        )

    def named_right(split):
        model.eval()
        entering = inputs(split)
        with autocast(recipe, device):
            guess = in_batches(
                lambda x: model.classify(features(x)).argmax(-1), entering, device
            ).cpu()
        return guess == getattr(task, split)[1]

    def after(epoch):
        if epoch:
            by_epoch.append(percent(named_right("val")))
        watch(epoch)

    features: Callable = (
        model.features if cached else (lambda x: model.features(model.below(pixels(x))))
    )
    training, losses, by_epoch, prune = inputs("train"), [], [], None
    while True:  # once, but for a method that prunes and trains again from the start
        model.reset(seed)
        seen = prepared_on or task
        model.method.prepare(
            backbone, pixels(seen.train[0]), seen.train[1].to(device), stream(seed, "preparation")
        )
        if prune is not None:
            prune()
        if recipe.standardise:
            with torch.no_grad():
                activations = in_batches(features, training, device)
                model.feature_mean.copy_(activations.mean(0))
                model.feature_scale.copy_(activations.std(0).clamp_min(1e-3))
        losses += train(model, features, training, labels, recipe, stream(seed, "order"), after)
        prune = model.method.prune()
        if prune is None:
            break
    right = named_right("test")
    return {
        "test": percent(right),
        "right": test_images.packed(right.numpy()),
        "val": by_epoch[-1],
        "val_by_epoch": by_epoch,
        "loss": losses,
        "parameters": count_parameters(model),
        "cached_below": first if cached else None,
        "fit_seconds": round(time.perf_counter() - start, 3),
    }


def accuracy(model: TunedModel, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Accuracy in percent of a model on images (N, 3, S, S) uint8 with labels (N,)."""
    mean, std, device = model.source.mean, model.source.std, next(model.parameters()).device
    guess = in_batches(lambda x: model(normalise(x, mean, std)).argmax(-1), images, device).cpu()
    return percent(guess == labels)


def percent(right: torch.Tensor) -> float:
    """Accuracy in percent from (N,) bool, whether an image was classified correctly."""
    return round(100 * right.double().mean().item(), 4)


def train(model, features, inputs, labels, recipe, generator, watch) -> list[float]:
    """The training steps: shuffled batches, cosine schedule with warm-up.

    Returns:
        The mean loss of each epoch.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    device = labels.device
    groups = [
        {"params": list(model.head.parameters()), "lr": recipe.head_rate or recipe.learning_rate}
    ]
    if model.method_parameters():
        groups.append({"params": model.method_parameters(), "lr": recipe.learning_rate})
    if recipe.optimizer == "adam":
        # fused: one call for all tensors, which matters for small networks
        optimizer = torch.optim.AdamW(groups, weight_decay=recipe.weight_decay, fused=True)
    else:
        optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=recipe.weight_decay)
    total = recipe.epochs * math.ceil(len(labels) / recipe.batch_size)
    warm = max(1, round(recipe.warmup * total))
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / total)))
    )
    losses = []
    watch(0)
    for epoch in range(recipe.epochs):
        # BatchNorm takes the batch's statistics where its own parameters are trained; a frozen
        # backbone stays as it is.
        model.backbone.train(model.method.trains_backbone)
        model.method.train()
        sum_of_losses: Any = 0.0  # a tensor from the first batch on
        for batch in (
            torch.randperm(len(labels), generator=generator).to(device).split(recipe.batch_size)
        ):
            x = inputs[batch]
            if recipe.augmentation != "none":
                x = crop_and_flip(x, generator)
            with autocast(recipe, device):
                loss = model.training_loss(features(x), labels[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            # asking for its value would make a GPU wait
            sum_of_losses += loss.detach().double() * len(batch)
        model.method.after_epoch()
        losses.append(round(sum_of_losses.item() / len(labels), 6))
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(
                f"the loss of {model.slug} is {losses[-1]} after epoch {epoch + 1}; "
                f"lower learning_rate (now {recipe.learning_rate}) or head_rate (now "
                f"{recipe.head_rate})."
            )
        watch(epoch + 1)
    model.eval()
    return losses


def autocast(recipe: Any, device: torch.device):
    """Context manager for the `precision` of a recipe, of classification or of segmentation."""
    return torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bf16")


def crop_and_flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random resized crop of each of (B, 3, S, S), half of them flipped; see `data.originals`."""
    own = getattr(images, "cropped", None)
    if own is not None:
        return own(generator).to(images.device)
    from torchvision.transforms import v2  # slow to import

    change = v2.Compose(
        [v2.RandomResizedCrop(images.shape[-1], antialias=True), v2.RandomHorizontalFlip()]
    )
    with torch.random.fork_rng(devices=[]):  # torchvision asks the global generator
        torch.manual_seed(torch.randint(2**62, (), generator=generator).item())
        return torch.stack([change(image) for image in images])


@torch.no_grad()
def in_batches(function: Callable, inputs: torch.Tensor, device, size: int = 250) -> torch.Tensor:
    """Apply a function to (n, ...) in batches of `size`, without gradients."""
    return torch.cat([function(part.to(device)) for part in inputs.split(size)])


def activation_gib(model: TunedModel, count: int) -> float:
    """Size of `count` cached activations, in GiB of float32."""
    start, backbone = model.method.start, model.source
    shape = (backbone.width,) if start == backbone.depth else backbone.shapes()[start]
    return count * math.prod(shape) * 4 / 2**30
