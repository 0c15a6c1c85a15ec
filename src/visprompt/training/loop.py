"""One loop that fits any method to any task."""

import sys
import time
from collections.abc import Callable
from functools import partial

import torch

from ..chance import stream
from ..checks import require
from ..data.tasks import Task, normalise
from ..errors import BadInput, choose
from ..methods import TunedModel
from ..methods.base import Method
from ..methods.parameters import count_parameters
from ..models import pooling
from ..models.remembered import remembered_fingerprint
from ..records import Record, recorded, test_images
from . import recipe_extras
from .activations import Entering, in_batches
from .recipe import Recipe, heeded, settled, with_own_rate
from .standardising import standardise_head
from .steps import autocast, cast_once, train


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
        BadInput: see `check_fit`, or images of another size than the backbone's.
    """
    check_fit(model, task, more)
    recipe = with_own_rate(recipe, model)
    values = fitting_of(recipe, model)(
        model,
        task,
        recipe,
        seed,
        prepared_on=prepared_on,
        **more,
    )
    model.task = {
        "name": task.name,
        "class_names": list(task.class_names),
        "image_size": task.size,
        "resize": task.resize,
    }
    return values


def check_fit(model: TunedModel, task: Task, more: dict) -> None:
    """Check that a model can be fitted to a task, and the further arguments of `fit_model`.

    Raises:
        BadInput: it cannot, or one is of another type or name.
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
    check_classes(model, task)


def check_classes(model: TunedModel, task: Task) -> None:
    """Check that the head has an output for each class of a task.

    Raises:
        BadInput: it has fewer.
    """
    if task.classes > model.num_classes:
        raise BadInput(
            f"{task.name} has {task.classes} classes; build the method with "
            f"num_classes={task.classes}."
        )


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

    A record holds results and no model: `fit` gives a trained model, and trains the run again.

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
    check_types(
        model=(model, TunedModel), task=(task, Task), recipe=(recipe, Recipe), seed=(seed, int)
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
            prepared_on=prepared_on,
        ),
        data=data_of(task.fingerprint, prepared_on and prepared_on.fingerprint),  # type: ignore[arg-type]
        weights=remembered_fingerprint(model.source),
        made=[model, model.source],
        about=about,
        run=run,
    )


def check_types(**given: tuple[object, type]) -> None:
    """Check arguments of `tune`, each a value and the type that it must have.

    Raises:
        BadInput: one has another type.
    """
    for name, (value, kind) in given.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadInput(
                f"tune's {name} must be a {kind.__name__}, not {type(value).__name__}; see "
                f"its docstring."
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
    fitting = {
        None: fit,
        recipe_extras.pooled: fit_pooled,
        recipe_extras.within: fit_with_extras,
    }[needed]
    return partial(fit_in_bf16, fitting) if recipe.precision == "bf16" else fitting


def fit_in_bf16(fitting: Callable[..., dict], *args, **more) -> dict:
    """One of the fits above, with the frozen weights cast once and not in each step."""
    with recipe_extras.wrapped(sys.modules[__name__], "train", cast_once):
        return fitting(*args, **more)


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
    check_classes(model, task)
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
    entering = Entering(model, task, recipe, cache)
    training, labels = entering.of("train"), task.train[1].to(entering.device)
    features = entering.features("train")
    losses: list[float] = []
    by_epoch: list[float] = []

    def after(epoch):
        if epoch:
            by_epoch.append(percent(named_right(entering, recipe, "val")))
        watch(epoch)

    prune = None
    while True:  # once, but for a method that prunes and trains again from the start
        model.reset(seed)
        show_images(model, prepared_on or task, entering, seed)
        if prune is not None:
            prune()
        if recipe.standardise:
            standardise_head(model, features, training)
        losses += train(model, features, training, labels, recipe, stream(seed, "order"), after)
        prune = model.method.prune()
        if prune is None:
            break
    right = named_right(entering, recipe, "test")
    return {
        "test": percent(right),
        "right": test_images.packed(right.numpy()),
        "val": by_epoch[-1],
        "val_by_epoch": by_epoch,
        "loss": losses,
        "parameters": count_parameters(model),
        "cached_below": entering.first if entering.kept else None,
        "fit_seconds": round(time.perf_counter() - start, 3),
    }


def show_images(model: TunedModel, task: Task, entering: Entering, seed: int) -> None:
    """Show a method the training images before the first step; most look at none."""
    images, labels = task.train
    # whole, and in memory, as a mapped set need not be; so only where a method overrides it
    if type(model.method).prepare is not Method.prepare:
        model.method.prepare(
            model.source,
            entering.pixels(images),
            labels.to(entering.device),
            stream(seed, "preparation"),
        )


def named_right(entering: Entering, recipe: Recipe, split: str) -> torch.Tensor:
    """Which images of a split a model classifies correctly: (N,) bool on the processor."""
    model, device = entering.model, entering.device
    model.eval()
    inputs, features = entering.of(split), entering.features(split)
    with autocast(recipe, device):
        guess = in_batches(lambda x: model.classify(features(x)).argmax(-1), inputs, device).cpu()
    return guess == getattr(entering.task, split)[1]


def accuracy(model: TunedModel, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Accuracy in percent of a model on images (N, 3, S, S) uint8 with labels (N,)."""
    mean, std, device = model.source.mean, model.source.std, next(model.parameters()).device
    guess = in_batches(lambda x: model(normalise(x, mean, std)).argmax(-1), images, device).cpu()
    return percent(guess == labels)


def percent(right: torch.Tensor) -> float:
    """Accuracy in percent from (N,) bool, whether an image was classified correctly."""
    return round(100 * right.double().mean().item(), 4)
