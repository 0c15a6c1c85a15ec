"""What one's own code calls around the one loop: fit, evaluate, search."""

import itertools
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

import pandas as pd
import torch

from ..data.tasks import SPLITS, Task
from ..errors import BadInput, choose
from ..methods import TunedModel, build_method, settings_of
from ..methods.parameters import count_parameters
from ..models.backbones import Backbone
from .loop import accuracy, check_classes, fit_model
from .protocol import FACTORS
from .recipe import Recipe, settled, with_own_rate
from .recipe_extras import wrapped


class Stopped(Exception):
    """A callback asked for the end of training."""


def fit(
    model: TunedModel,
    task: Task,
    recipe: Recipe = Recipe(),
    seed: int = 0,
    *,
    callback: Callable | None = None,
    loss: Callable | None = None,
    cache: bool = True,
    watch: Callable | None = None,
    prepared_on: Task | None = None,
) -> dict:
    """Train a model on a task, evaluate it, and tell it the names of the task's classes.

    It trains in any case, also where `tune` has left a record of the same run: a record holds
    results, this leaves the model.

    Args:
        recipe: without a learning rate, the method's own is taken.
        callback: called after each epoch with its number, from 1 on, and {"loss": of training,
            "val": accuracy in percent}. Training ends where it returns True.
        loss: a function of logits (B, classes) and labels (B,) in the place of the cross-entropy,
            such as `torch.nn.CrossEntropyLoss(weight=…, label_smoothing=0.1)`; what a method adds
            to the loss stays.
        cache: whether activations below the first trained block are computed once.
        watch: called with the number of finished epochs, 0 before the first step.
        prepared_on: the task whose images a method sees before the first step, if it is another.

    Returns:
        `test` and `val` accuracy in percent after the last epoch; `val_by_epoch`; the training
        `loss` of each epoch; the number of trained `parameters`; and, unless a callback ended the
        training, `right` (see `records.test_images`), `cached_below` and `fit_seconds`.

    Raises:
        BadInput: too few outputs for the classes, images of another size than the backbone's, or an
            argument of another type.
    """
    seen: dict[str, list[float]] = {"val_by_epoch": [], "loss": []}
    batches: list[tuple[torch.Tensor, int]] = []

    def own_loss(plain):
        def called(features, labels):
            value = (
                plain(features, labels)
                if loss is None
                else loss(model.classify(features), labels) + model.method.loss(features, labels)
            )
            batches.append((value.detach().double(), len(labels)))
            return value

        return called

    def after(epoch):
        if watch is not None:
            watch(epoch)
        if callback is not None and epoch:
            mean = sum(value * count for value, count in batches) / sum(n for _, n in batches)
            batches.clear()
            values = {"loss": round(mean.item(), 6), "val": evaluate(model, task, "val")}
            seen["loss"].append(values["loss"])
            seen["val_by_epoch"].append(values["val"])
            if callback(epoch, values) is True:
                raise Stopped

    with ExitStack() as stack:
        if callback is not None or loss is not None:
            stack.enter_context(wrapped(model, "training_loss", own_loss))
        try:
            more: dict[str, Any] = {"prepared_on": prepared_on, "cache": cache, "watch": after}
            return fit_model(model, task, recipe, seed, **more)
        except Stopped:
            name_classes(model, task)
            val, own = seen["val_by_epoch"][-1], count_parameters(model)
            return {"test": evaluate(model, task), "val": val, **seen, "parameters": own}


def name_classes(model: TunedModel, task: Task) -> None:
    """Tell a model what it was trained on, as `predict` needs; `fit` does it itself."""
    check_classes(model, task)
    model.task = {
        "name": task.name,
        "class_names": list(task.class_names),
        "image_size": task.size,
        "resize": task.resize,
    }


def evaluate(model: TunedModel, task: Task, split: str = "test") -> float:
    """Accuracy in percent of a model on a split of a task: "train", "val" or "test"."""
    choose("split", split, SPLITS)
    check_classes(model, task)
    model.eval()
    return accuracy(model, *getattr(task, split))


def search(
    slug: str,
    backbone: Backbone,
    task: Task,
    grid: Mapping | None = None,
    recipe: Recipe = Recipe(),
    seed: int = 0,
    **settings: Any,
) -> tuple[pd.DataFrame, TunedModel]:
    """Fit a method once for each combination of a grid; validation images choose.

    Args:
        grid: field of `Recipe` or setting of the method -> values, such as {"learning_rate":
            [0.001, 0.01], "prompt_tokens": [5, 10]}; None: 0.2, 1 and 5 times the method's own
            learning rate.
        settings: the method's, the same in every try.

    Returns:
        A row per try, the best first: what the grid asks, `loss` of the last epoch, `val` accuracy
        in percent (both empty where training diverged). And the best model, fitted; in a tie the
        first of the grid.

    Raises:
        BadInput: as `fit`, a name that neither recipe nor method has, or no try that converged.
    """
    of_recipe = [field.name for field in fields(Recipe)]
    if grid is None:
        model = build_method(slug, backbone, task.classes, **settings)
        own = settled(with_own_rate(recipe, model), slug, backbone.family)
        rate = "head_rate" if slug == "linear-probe" else "learning_rate"
        grid = {rate: [getattr(own, rate) * factor for factor in FACTORS]}
    of_method = [field.name for field in fields(settings_of(slug, **settings))]
    for name in grid:
        choose(f"name in the grid, of Recipe or {slug}", name, [*of_recipe, *of_method])
    rows, best, model = [], -math.inf, None
    for values in itertools.product(*grid.values()):
        tried = dict(zip(grid, values, strict=True))
        chosen = {name: value for name, value in tried.items() if name in of_method}
        changed = {name: value for name, value in tried.items() if name not in of_method}
        candidate = build_method(slug, backbone, task.classes, **{**settings, **chosen})
        try:
            found: dict[str, Any] = fit(candidate, task, replace(recipe, **changed), seed)
        except FloatingPointError:  # it diverged
            found = {"loss": [math.nan], "val": math.nan}
        rows.append({**tried, "loss": found["loss"][-1], "val": found["val"]})
        if found["val"] > best:
            best, model = found["val"], candidate
    if model is None:
        raise BadInput("no try of this search converged; give lower learning rates.")
    return pd.DataFrame(rows).sort_values("val", ascending=False, kind="stable"), model
